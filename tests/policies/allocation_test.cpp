#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "policies/bases/adaptive_policy.h"
#include "policies/bases/pyramid_policy.h"
#include "policies/registry/registry.h"
#include "policies/registry/reselect.h"

using namespace kvscope::policies;
using Counts = std::vector<int64_t>;

namespace {

RunContext context_of(ModelShape shape, int64_t n_tokens, int64_t budget) {
    RunContext context;
    context.shape = shape;
    context.n_tokens = n_tokens;
    context.budget = budget;
    return context;
}

std::vector<Selection> from_scores(const char* policy, const RunContext& context, std::vector<LayerScores> scores) {
    const PolicySpec spec = parse_policy(policy);
    return reselect(*spec.definition, spec.values, context, std::move(scores));
}

LayerScores f32(std::vector<float> scores) { return {Granularity::kv_head, std::move(scores), {}}; }
LayerScores f64(std::vector<double> scores) { return {Granularity::kv_head, {}, std::move(scores)}; }

}  // namespace

TEST_CASE("PyramidKV's budgets per layer, computed by hand", "[allocation]") {
    // c = 100: the last layer gets 100 / 20 = 5, the first 195. 5 layers: 195, 147.5, 100, 52.5, 5; layer 1 gets the
    // remaining slot.
    CHECK(pyramid_budgets(5, 100, 1000, 20, false) == Counts{195, 148, 100, 52, 5});
    // With a prefix of 150 entries: 150, 125, 100, 75, 50.
    CHECK(pyramid_budgets(5, 100, 150, 20, false) == Counts{150, 125, 100, 75, 50});
    CHECK(pyramid_budgets(5, 100, 100, 20, false) == Counts(5, 100));
    CHECK(pyramid_budgets(1, 100, 1000, 20, false) == Counts{100});
    CHECK(pyramid_budgets(4, 96, 1000, 1, false) == Counts(4, 96));
    CHECK(pyramid_budgets(3, 0, 0, 20, false) == Counts(3, 0));
}

TEST_CASE("the reference's rounded-down step exceeds the total as documented", "[allocation]") {
    // B = 128, w = 32, L = 32: 4560 entries per head instead of 4096, 11% more.
    const Counts reference = pyramid_budgets(32, 96, 8000, 20, true);
    CHECK(reference.front() == 188);
    CHECK(reference[1] == 183);
    CHECK(std::accumulate(reference.begin(), reference.end(), int64_t{0}) + 32 * 32 == 4560);
    const Counts exact = pyramid_budgets(32, 96, 8000, 20, false);
    CHECK(std::accumulate(exact.begin(), exact.end(), int64_t{0}) == 32 * 96);
    CHECK(exact.back() == 4);
}

TEST_CASE("PyramidKV's budgets have the exact total and decrease for any size", "[allocation]") {
    for (int layers : {2, 3, 28, 30, 32, 80}) {
        for (int64_t c : {1, 2, 19, 20, 21, 96, 997}) {
            for (int64_t prefix : {c, c + 1, 2 * c - 1, 2 * c, 10 * c}) {
                for (double beta : {1.0, 1.5, 20.0, 1e6}) {
                    CAPTURE(layers, c, prefix, beta);
                    const Counts budgets = pyramid_budgets(layers, c, prefix, beta, false);
                    CHECK(std::accumulate(budgets.begin(), budgets.end(), int64_t{0}) == layers * c);
                    CHECK(budgets.front() <= prefix);
                    CHECK(budgets.back() >= 0);
                    for (size_t i = 1; i < budgets.size(); ++i) CHECK(budgets[i] <= budgets[i - 1]);
                }
            }
        }
    }
}

TEST_CASE("Ada-KV's budgets, computed by hand", "[allocation]") {
    // Head 0 has the six best scores of both heads, c = 3.
    const std::vector<float> scores{9, 8, 7, 6, 5, 4, /**/ 1, 1, 1, 1, 1, 1};
    CHECK(adaptive_budgets(scores, 2, 6, 6, 3, 0.0) == Counts{6, 0});
    // 6 * 0.8 + 0.6 = 5.4, and 0.6: head 1 gets the remaining slot.
    CHECK(adaptive_budgets(scores, 2, 6, 6, 3, 0.2) == Counts{5, 1});
    CHECK(adaptive_budgets(scores, 2, 6, 6, 3, 0.5) == Counts{5, 1});  // 4.5 and 1.5: head 0 wins the tie
    CHECK(adaptive_budgets(scores, 2, 6, 6, 3, 1.0) == Counts{3, 3});
    const std::vector<float> alike(12, 1.0f);  // the lower head wins ties
    CHECK(adaptive_budgets(alike, 2, 6, 6, 3, 0.0) == Counts{6, 0});
}

TEST_CASE("normalize weights each head by the share of its best c scores", "[allocation]") {
    std::vector<float> scores{4, 4, 1, 1, /**/ 2, 2, 2, 2, /**/ 0, 0, 0, 0};
    weigh_by_concentration(scores.data(), 3, 4, 4, 2);
    CHECK(scores == std::vector<float>{3.2f, 3.2f, 0.8f, 0.8f, 1, 1, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("SnapKV from given scores: ties go to the lower position, and the window follows", "[allocation]") {
    const float none = NAN;
    const auto kept =
        from_scores("snapkv:window=2", context_of({1, 2, 1, 4}, 7, 4), {f32({1, 3, 2, 3, 3, none, none})});
    CHECK(kept[0].rows[0] == std::vector<uint32_t>{1, 3, 5, 6});
}

TEST_CASE("joint selection gives ties to the lower head", "[allocation]") {
    const float none = NAN;
    const auto kept = from_scores("ada-snapkv:window=1,alpha=0", context_of({1, 2, 2, 4}, 4, 2),
                                  {f32({5, 5, 1, none, 5, 5, 5, none})});
    CHECK(kept[0].rows[0] == std::vector<uint32_t>{0, 1, 3});
    CHECK(kept[0].rows[1] == std::vector<uint32_t>{3});
}

TEST_CASE("H2O from given sums: recent positions have sums, too", "[allocation]") {
    const std::vector<float> sums{9, 1, 8, 2, 7, 3, 99, 98};
    auto kept = [&](const char* policy, int64_t budget) {
        return from_scores(policy, context_of({1, 2, 1, 4}, 8, budget), {f32(sums)})[0].rows[0];
    };
    CHECK(kept("h2o", 4) == std::vector<uint32_t>{0, 2, 6, 7});
    CHECK(kept("h2o", 5) == std::vector<uint32_t>{0, 2, 4, 6, 7});
    CHECK(kept("h2o:recent=0", 2) == std::vector<uint32_t>{6, 7});
    CHECK(kept("h2o:recent=3", 4) == std::vector<uint32_t>{0, 5, 6, 7});
    CHECK(kept("h2o", 1) == std::vector<uint32_t>{6});  // recent is half of the budget, rounded down to 0
}

TEST_CASE("StreamingLLM's entries, computed by hand", "[allocation]") {
    auto kept = [](const char* policy, int64_t n, int64_t budget) {
        return from_scores(policy, context_of({1, 2, 1, 4}, n, budget), std::vector<LayerScores>(1))[0].rows[0];
    };
    CHECK(kept("streaming-llm:sinks=2", 9, 5) == std::vector<uint32_t>{0, 1, 6, 7, 8});
    CHECK(kept("streaming-llm:sinks=0", 4, 1) == std::vector<uint32_t>{3});
    CHECK(kept("streaming-llm", 5, 5) == std::vector<uint32_t>{0, 1, 2, 3, 4});
    CHECK(kept("streaming-llm", 2, 9) == std::vector<uint32_t>{0, 1});
}

TEST_CASE("RABA's budgets, computed by hand", "[allocation]") {
    // Three heads without the second softmax: heads 0 and 1 are equal, head 2 differs. c = 2 of 4 prefix positions, T =
    // 6. The six best scores are .7 .7 .6 .2 .2 .2 (heads 0, 1, 2, 0, 1, 2).
    const double none = NAN;
    const std::vector<double> s{.7, .2, .05, .05, none, /**/ .7, .2, .05, .05, none, /**/ .1, .1, .2, .6, none};
    const RunContext context = context_of({1, 3, 3, 4}, 5, 3);
    auto sizes = [&](const char* policy) {
        Counts counts;
        const std::vector<Selection> selections = from_scores(policy, context, {f64(s)});
        for (const auto& row : selections[0].rows) {
            counts.push_back(static_cast<int64_t>(row.size()) - 1);
        }
        return counts;
    };
    CHECK(sizes("aperturekv:window=1,sharpen=none,raba=off") == Counts{2, 2, 2});
    // D = (J, J, 2J) / 2 with J = JSD(0, 2): weights 1 : 1 : 2 give 1.5, 1.5, 3; the lower head gets the remaining
    // slot.
    CHECK(sizes("aperturekv:window=1,sharpen=none") == Counts{2, 1, 3});
    // alpha = 0.5 mixes (2, 1, 3) with (2, 2, 2): 2, 1.5, 2.5; head 1 wins the tie.
    CHECK(sizes("aperturekv:window=1,sharpen=none,alpha=0.5") == Counts{2, 2, 2});
    const auto jsd = from_scores("aperturekv:window=1,sharpen=none", context, {f64(s)})[0].head_jsd;
    CHECK(jsd[1] == 0.0f);
    CHECK(jsd[2] == jsd[5]);
    CHECK(jsd[2] > 0.1f);
}

TEST_CASE("RABA keeps the initial budgets if all heads are equal", "[allocation]") {
    const double none = NAN;
    const std::vector<double> s{.5, .3, .2, none, /**/ .5, .3, .2, none};
    const auto rows = from_scores("aperturekv:window=1", context_of({1, 2, 2, 4}, 4, 2), {f64(s)})[0].rows;
    CHECK(rows[0] == std::vector<uint32_t>{0, 3});
    CHECK(rows[1] == std::vector<uint32_t>{0, 3});
}

TEST_CASE("RABA never gives a head more than the prefix; the others share the rest", "[allocation]") {
    // Head 0 differs from the others and would get nearly all of T = 3 * 3 slots, but its prefix has 4 entries.
    const double none = NAN;
    const std::vector<double> s{.9, .05, .03, .02, none, /**/ .25, .25, .25, .25, none, /**/ .26, .25, .25, .24, none};
    const auto rows = from_scores("aperturekv:window=1,sharpen=none", context_of({1, 3, 3, 4}, 5, 4), {f64(s)})[0].rows;
    CHECK(rows[0].size() + rows[1].size() + rows[2].size() == 12);
    for (const auto& row : rows) CHECK(row.size() <= 5);
}
