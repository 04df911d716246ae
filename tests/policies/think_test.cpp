#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "policies/api/budget.h"
#include "policies/registry/registry.h"
#include "policies/registry/reselect.h"
#include "tests/policies/random_cache.h"
#include "tests/policies/stored_widths.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

constexpr ModelShape model_shape{2, 6, 3, 16};
constexpr int64_t prompt_tokens = 90;

std::vector<Selection> select(const std::string& policy, Cache& cache, double share) {
    RunContext context = cache.context(std::llround(share * static_cast<double>(prompt_tokens)));
    context.budget_share = share;
    const auto made = parse_policy(policy).create();
    made->begin(context);
    std::vector<Selection> selections;
    for (const auto& layer : cache.observations) selections.push_back(made->select(*layer));
    return selections;
}

/// (d) by the definition: mean over the window and the group of q^2, times the mean over the prompt of k^2.
std::vector<double> channel_scores(const Layer& layer, int head, int window) {
    const int64_t d = layer.shape.head_dim, n = layer.n_tokens;
    std::vector<double> scores;
    for (int64_t c = 0; c < d; ++c) {
        double queries = 0, keys = 0;
        for (int h = head * layer.shape.group(); h < (head + 1) * layer.shape.group(); ++h)
            for (int64_t i = n - window; i < n; ++i)
                queries += std::pow(layer.queries[static_cast<size_t>((h * n + i) * d + c)], 2);
        for (int64_t j = 0; j < n; ++j) keys += std::pow(layer.keys[static_cast<size_t>((head * n + j) * d + c)], 2);
        scores.push_back(queries / (window * layer.shape.group()) * keys / static_cast<double>(n));
    }
    return scores;
}

}  // namespace

TEST_CASE("ThinK keeps the channels with the largest scores, for all keys but the last", "[think]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 3);
    for (const int window : {8, 32}) {
        const auto selections = select("think:window=" + std::to_string(window), cache, 0.7);
        for (size_t layer = 0; layer < selections.size(); ++layer) {
            const Selection& selection = selections[layer];
            REQUIRE(selection.stored);
            for (int head = 0; head < model_shape.n_kv_heads; ++head) {
                const auto row = static_cast<size_t>(head);
                CHECK(selection.rows[row].size() == prompt_tokens);
                const auto expected = channel_scores(cache.layers[layer], head, window);
                for (size_t c = 0; c < 16; ++c)
                    CHECK(selection.channel_scores[row * 16 + c] == Approx(expected[c]).epsilon(1e-5));
                const StoredRow& stored = selection.stored->rows[row];
                REQUIRE(stored.stored.size() == 1);
                CHECK(stored.stored[0].positions.size() == prompt_tokens - 32);
                CHECK(stored.plain.size() == 32);
                CHECK(stored.stored[0].values.parts[0].width == 16);
                // 0.4 of the bytes are 9.6 channels of all 90 keys, or 14.9 channels of the 58 pruned keys: 15 are
                // dropped.
                const StoredPart& keys = stored.stored[0].keys.parts[0];
                REQUIRE(keys.channels.size() == 1);
                double least = 1e30, most = 0;
                for (size_t c = 0; c < 16; ++c) {
                    const bool kept = std::find(keys.channels.begin(), keys.channels.end(), c) != keys.channels.end();
                    (kept ? least : most) = kept ? std::min(least, expected[c]) : std::max(most, expected[c]);
                }
                CHECK(least > most);
            }
            require_valid_storage("think", static_cast<int>(layer), model_shape, selection);
        }
    }
}

TEST_CASE("ThinK's budget is a share of the bytes, which its ratio replaces", "[think]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 4);
    const auto kept = [&](const std::string& policy, double share) {
        const auto selection = select(policy, cache, share)[0];
        return selection.stored ? selection.stored->rows[0].stored[0].keys.parts[0].channels.size() : size_t{16};
    };
    CHECK(kept("think:recent=0", 0.8) == 9);   // 0.4 * 16, rounded up: 7 are dropped
    CHECK(kept("think:recent=0", 0.75) == 7);  // 8 of 16 minus the channel indices
    CHECK(kept("think:recent=0", 0.54) == 1);
    CHECK(kept("think:recent=30", 0.8) == 6);  // 0.4 * 16 * 90 / 60 = 9.6
    CHECK(kept("think", 1.0) == 16);
    CHECK(kept("think:ratio=0.4", 0.2) == 10);
    CHECK(kept("think:ratio=0", 0.8) == 16);
    CHECK(kept("think:recent=1000,ratio=0.4", 0.8) == 16);  // no keys are left to be pruned
    CHECK(kept("think:ratio=0.99999999", 0.8) == 1);
    CHECK(parse_policy("think").own_share() == std::nullopt);
    CHECK(parse_policy("think:ratio=0.4").own_share() == 0.8);
    CHECK(parse_policy("snapkv").own_share() == std::nullopt);
    const auto policy = parse_policy("think:recent=0").create();
    for (const int64_t budget : {1, 30, 45}) {
        CHECK_THROWS_AS(policy->begin(cache.context(budget)), BudgetError);
        CHECK_THROWS_WITH(policy->begin(cache.context(budget)), Catch::Matchers::Contains("at least 53.2 %"));
    }
    CHECK_NOTHROW(policy->begin(cache.context(48)));
    // If all keys of a prompt stay whole, nothing can be saved.
    CHECK_THROWS_WITH(parse_policy("think:recent=90").create()->begin(cache.context(80)),
                      Catch::Matchers::Contains("at least 100 %"));
    CHECK_NOTHROW(parse_policy("think:recent=90").create()->begin(cache.context(90)));
    CHECK_THROWS_AS(parse_policy("think:ratio=1"), ParameterError);
}

TEST_CASE("ThinK never exceeds its budget, channel indices included", "[think]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 5);
    for (const int recent : {0, 10, 32})
        for (double share = 0.55; share < 1.0; share += 0.01) {
            const auto spec = parse_policy("think:recent=" + std::to_string(recent)).create();
            RunContext context = cache.context(80);
            context.budget_share = share;
            try {
                spec->begin(context);
            } catch (const BudgetError&) {
                continue;
            }
            CAPTURE(recent, share);
            for (const size_t bytes : row_bytes_of(spec->select(*cache.observations[0]), 16, 2)) {
                CHECK(static_cast<double>(bytes) <= share * 2 * prompt_tokens * 16 * 2);
                // One more channel would exceed it.
                CHECK(static_cast<double>(bytes) > share * 2 * prompt_tokens * 16 * 2 - 2 * prompt_tokens - 4);
            }
        }
}

TEST_CASE("ThinK with ratio 0.5 saves half of the keys' bytes, as announced", "[think]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 5);
    const auto selection = select("think:ratio=0.5,recent=10", cache, 1)[0];
    // Values, whole keys, pruned keys, channel indices.
    for (const size_t bytes : row_bytes_of(selection, 16, 2)) CHECK(bytes == (90 * 16 + 10 * 16 + 80 * 8) * 2 + 8 * 2);
    const auto summary = summarize_storage("think", 0, model_shape, prompt_tokens, selection, 2);
    CHECK(summary.drops_channels);
    CHECK_FALSE(summary.merges);
    CHECK(std::accumulate(summary.key_channels.begin(), summary.key_channels.end(), 0) == 3 * 8);
    CHECK(summary.n_stored == std::vector<uint32_t>{80, 80, 80});
    CHECK(summary.key_width == std::vector<float>{8, 8, 8});
    check_widths(selection, summary, 16);
    CHECK(summary.value_width == std::vector<float>{16, 16, 16});
    CHECK(summary.bytes.total() == 3 * row_bytes_of(selection, 16, 2)[0]);
    CHECK(summary.bytes.channels == 3 * (80 * 8 * 2 + 8 * 2));
}

TEST_CASE("ThinK's decision follows from its channel scores, which must be finite", "[think]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 6);
    const PolicySpec spec = parse_policy("think");
    const auto first = select("think", cache, 0.7);
    std::vector<LayerScores> scores(2);
    for (size_t layer = 0; layer < 2; ++layer) scores[layer].channel_scores = first[layer].channel_scores;
    RunContext context = cache.context(63);
    context.budget_share = 0.7;
    const auto again = reselect(*spec.definition, spec.values, context, scores);
    for (size_t layer = 0; layer < 2; ++layer)
        for (size_t row = 0; row < 3; ++row)
            CHECK(again[layer].stored->rows[row].stored[0].keys.parts[0].channels ==
                  first[layer].stored->rows[row].stored[0].keys.parts[0].channels);
    CHECK_THROWS_AS(reselect(*spec.definition, spec.values, context, std::vector<LayerScores>(2)), ScoreError);
    cache.layers[0].keys[16 * 17 + 3] = NAN;
    cache.observe(32);
    CHECK_THROWS_AS(select("think", cache, 0.7), ScoreError);
    CHECK_THROWS_WITH(select("think", cache, 0.7), Catch::Matchers::Contains("layer 0, head 0"));
}

TEST_CASE("the description of a budget in bytes says that every token is kept", "[think]") {
    CHECK(parse_budget("0.8").describe(2000, BudgetOf::bytes) ==
          "every token kept, 80.0 % of the full cache's bytes requested (20.0 % saved)");
    CHECK(parse_budget("0.7001").describe(10, BudgetOf::bytes) ==
          "every token kept, 70.0 % of the full cache's bytes requested (30.0 % saved)");
    CHECK(parse_budget("1500").describe(2000, BudgetOf::bytes) ==
          "every token kept, 75.0 % of the full cache's bytes requested (25.0 % saved)");
}
