#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "policies/methods/gram_eigenvectors.h"
#include "policies/registry/registry.h"
#include "policies/registry/validation.h"
#include "tests/policies/random_cache.h"
#include "tests/policies/stored_widths.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;
using Catch::Matchers::Contains;

namespace {

constexpr ModelShape model_shape{5, 4, 2, 8};
constexpr int64_t prompt_tokens = 50;
constexpr size_t hidden_size = 24;
constexpr size_t projected_size = 16;  // G d

Projection projection_of(int layer, Projected which) {
    std::mt19937 random(static_cast<unsigned>(10 * layer + (which == Projected::keys ? 1 : 2)));
    std::normal_distribution<float> normal;
    Projection projection{.n_out = projected_size,
                          .n_in = hidden_size,
                          .weight = std::vector<float>(projected_size * hidden_size),
                          .bias = {}};
    for (float& value : projection.weight) value = normal(random);
    for (size_t i = 0; i < projected_size; ++i) projection.bias.push_back(normal(random));
    return projection;
}

/// Inputs that are partly similar across layers.
struct Prompt {
    Cache cache = random_cache(model_shape, prompt_tokens, 3);
    std::vector<std::vector<float>> inputs;

    Prompt() {
        std::mt19937 random(7);
        std::normal_distribution<float> normal;
        std::vector<float> common(prompt_tokens * hidden_size);
        for (float& value : common) value = normal(random);
        for (size_t layer = 0; layer < cache.observations.size(); ++layer) {
            inputs.push_back(common);
            for (float& value : inputs.back()) value += 0.7f * normal(random);
        }
        for (size_t layer = 0; layer < inputs.size(); ++layer)
            cache.observations[layer]->projection_inputs = inputs[layer];
    }

    RunContext context(double share) const {
        RunContext context = cache.context(std::llround(share * static_cast<double>(prompt_tokens)));
        context.budget_share = share;
        context.projection = projection_of;
        return context;
    }

    std::vector<Selection> select(const std::string& policy, double share) {
        const auto made = parse_policy(policy).create();
        made->begin(context(share));
        auto selections = select_all(made, cache);
        for (size_t layer = 0; layer < selections.size(); ++layer)
            require_valid_storage("commonkv", static_cast<int>(layer), model_shape, selections[layer]);
        return selections;
    }
};

using Vector = std::vector<double>;

/// Leading right singular vectors (rank, hidden) and singular values of all weights of layers [first, end).
Directions directions_of(int first, int end, int rank) {
    Vector products(hidden_size * hidden_size, 0.0);
    for (int layer = first; layer < end; ++layer)
        for (const auto which : {Projected::keys, Projected::values})
            accumulate_gram_matrix(projection_of(layer, which).weight, hidden_size, products);
    Directions found = leading_eigenvectors(products, hidden_size, rank);
    for (double& value : found.eigenvalues) value = std::sqrt(value);
    return found;
}

Vector along(const Directions& directions, const Vector& x) {
    Vector found;
    for (size_t i = 0; i < directions.eigenvalues.size(); ++i)
        found.push_back(std::inner_product(
            x.begin(), x.end(), directions.vectors.begin() + static_cast<std::ptrdiff_t>(i * hidden_size), 0.0));
    return found;
}

Vector input(const Prompt& prompt, int layer, size_t token) {
    const auto from =
        prompt.inputs[static_cast<size_t>(layer)].begin() + static_cast<std::ptrdiff_t>(token * hidden_size);
    return {from, from + hidden_size};
}

/// The cosine of a token's latents, S^1/2 V^T x.
double similarity(const Prompt& prompt, const Directions& directions, int first, int last, size_t token) {
    const Vector a = along(directions, input(prompt, first, token)), b = along(directions, input(prompt, last, token));
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double weight = directions.eigenvalues[i];
        ab += weight * a[i] * b[i];
        aa += weight * a[i] * a[i];
        bb += weight * b[i] * b[i];
    }
    return ab / std::sqrt(aa * bb);
}

/// A head's keys or values, rebuilt from the stored vectors of an entry.
Vector rebuilt(const StoredVectors& vectors, size_t entry) {
    const StoredPart& part = vectors.parts.at(0);
    Vector sum(vectors.offset.begin(), vectors.offset.end());
    for (size_t i = 0; i < static_cast<size_t>(part.width); ++i)
        for (size_t c = 0; c < 8; ++c)
            sum[c] += double{part.block->numbers[entry * static_cast<size_t>(part.width) + i]} *
                      double{part.map->numbers[i * 8 + c]};
    return sum;
}

/// Checks against the definition: W V_r V_r^T x + b, where x is the token's own input or the group's mean.
void check_row(const Prompt& prompt, const StoredRow& row, int layer, int head, int first, int end, int rank,
               const std::set<uint32_t>& own) {
    const Directions directions = directions_of(first, end, rank);
    for (const StoredEntries& entries : row.stored)
        for (size_t entry = 0; entry < entries.positions.size(); ++entry) {
            const uint32_t token = entries.positions[entry];
            Vector x(hidden_size, 0.0);
            const bool is_own = own.contains(token);
            for (int of = is_own ? layer : first; of < (is_own ? layer + 1 : end); ++of)
                for (size_t c = 0; c < hidden_size; ++c)
                    x[c] += input(prompt, of, token)[c] / (is_own ? 1 : end - first);
            const Vector latent = along(directions, x);
            Vector kept(hidden_size, 0.0);
            for (size_t i = 0; i < latent.size(); ++i)
                for (size_t c = 0; c < hidden_size; ++c)
                    kept[c] += latent[i] * double{directions.vectors[i * hidden_size + c]};
            for (const auto which : {Projected::keys, Projected::values}) {
                const auto found = rebuilt(which == Projected::keys ? entries.keys : entries.values, entry);
                const Projection made_with = projection_of(layer, which);
                for (size_t c = 0; c < 8; ++c) {
                    const size_t out = static_cast<size_t>(head) * 8 + c;
                    double expected = double{made_with.bias[out]};
                    for (size_t in = 0; in < hidden_size; ++in)
                        expected += double{made_with.weight[out * hidden_size + in]} * kept[in];
                    CHECK(found[c] == Approx(expected).margin(1e-4));
                }
            }
        }
}

/// Tokens with a latent in each layer, for each group, by the definition.
std::vector<std::set<uint32_t>> own_tokens(const Prompt& prompt, int step, int rank, double unlike, bool of_model) {
    struct Candidate {
        double similarity;
        size_t group;
        uint32_t token;
    };
    std::vector<std::vector<Candidate>> lists;
    std::vector<std::set<uint32_t>> own;
    for (int first = 0; first < model_shape.n_layers; first += step) {
        const int end = std::min(first + step, model_shape.n_layers);
        const Directions directions = directions_of(first, end, rank);
        if (lists.empty() || !of_model) lists.emplace_back();
        own.emplace_back();
        for (uint32_t token = 0; token < prompt_tokens; ++token) {
            lists.back().push_back({similarity(prompt, directions, first, end - 1, token), own.size() - 1, token});
            if (token < 2 || token + 5 >= prompt_tokens || end - first == 1) own.back().insert(token);
        }
    }
    for (auto& list : lists) {
        std::stable_sort(list.begin(), list.end(),
                         [](const Candidate& a, const Candidate& b) { return a.similarity < b.similarity; });
        const auto n = static_cast<size_t>(std::floor(unlike * static_cast<double>(list.size()) + 1e-9));
        for (size_t i = 0; i < n; ++i) own[list[i].group].insert(list[i].token);
    }
    return own;
}

}  // namespace

TEST_CASE("CommonKV stores latents that a group's layers share, except for the least similar tokens", "[commonkv]") {
    Prompt prompt;
    for (const auto& [step, rank, scope] :
         {std::tuple{2, 12, "model"}, {2, 12, "group"}, {3, 24, "model"}, {4, 10, "group"}, {1, 20, "group"}}) {
        CAPTURE(step, rank, scope);
        const auto selections = prompt.select("commonkv:sinks=2,recent=5,unlike=0.3,rank=" + std::to_string(rank) +
                                                  ",layer_step=" + std::to_string(step) + ",scope=" + scope,
                                              4.0);
        const auto own = own_tokens(prompt, step, rank, 0.3, scope == std::string("model"));
        for (int layer = 0; layer < model_shape.n_layers; ++layer) {
            const int first = layer - layer % step, end = std::min(first + step, model_shape.n_layers);
            const auto& of_group = own[static_cast<size_t>(layer / step)];
            const Selection& selection = selections[static_cast<size_t>(layer)];
            REQUIRE(selection.stored);
            size_t stored = 0;
            for (const auto& block : selection.stored->blocks) stored += block->numbers.size();
            CHECK(stored == static_cast<size_t>(rank) * (layer == first ? prompt_tokens : of_group.size()));
            for (int head = 0; head < model_shape.n_kv_heads; ++head) {
                const StoredRow& row = selection.stored->rows[static_cast<size_t>(head)];
                CHECK(row.plain.empty());
                const auto& last = row.stored.back().positions;
                CHECK(std::set<uint32_t>(last.begin(), last.end()) == of_group);
                check_row(prompt, row, layer, head, first, end, rank, of_group);
            }
        }
    }
}

TEST_CASE("CommonKV's rank is the largest whose latents fit into the budget", "[commonkv]") {
    Prompt prompt;
    const auto found = [&](const std::string& policy, double share) {
        size_t bytes = 0;
        int width = 0;
        for (const Selection& selection : prompt.select(policy, share)) {
            for (const size_t row : row_bytes_of(selection, 8, 2)) bytes += row;
            if (selection.stored)
                check_widths(selection, summarize_storage("commonkv", 0, model_shape, prompt_tokens, selection, 2), 8);
            if (selection.stored) width = selection.stored->rows[0].stored[0].keys.parts[0].width;
        }
        return std::pair(width, static_cast<double>(bytes) / (5.0 * 2 * 16 * prompt_tokens * 2));
    };
    for (const char* scope : {"model", "group"})
        for (const double share : {0.3, 0.5, 0.7}) {
            const auto [rank, bytes] =
                found(std::string("commonkv:sinks=2,recent=5,unlike=0.2,layer_step=2,scope=") + scope, share);
            CAPTURE(scope, share, rank);
            CHECK(rank >= 1);
            CHECK(bytes <= share);
            CHECK(bytes > 0.6 * share);
        }
    for (const double share : {0.25, 0.3, 0.4, 0.5, 0.6}) {
        int largest = 0;
        for (int rank = 1; rank <= 24; ++rank) {
            size_t latents = 0;
            const auto own = own_tokens(prompt, 2, rank, 0.2, true);
            for (size_t group = 0; group < own.size(); ++group)
                latents += prompt_tokens + (group == 2 ? 0 : own[group].size());
            if (static_cast<double>(latents) * rank <= share * 5 * 2 * 16 * prompt_tokens) largest = rank;
        }
        CAPTURE(share);
        CHECK(found("commonkv:sinks=2,recent=5,unlike=0.2,layer_step=2", share).first == largest);
    }
    // 0.58 of 150 tokens are 87, despite rounding errors: 237 latents, and the budget allows 9 numbers each.
    CHECK(found("commonkv:recent=0,sinks=0,unlike=0.58,layer_step=2,scope=model", 0.2955).first == 9);
    CHECK(found("commonkv", 1.0) == std::pair(0, 1.0));
    CHECK(found("commonkv:recent=0,sinks=0,unlike=0,layer_step=5", 0.2).first == 24);  // 32 numbers, 24 inputs
    for (const char* step : {"6", "134217728", "134217729", "1000000000"})             // more than all layers
        CHECK(found(std::string("commonkv:recent=0,sinks=0,unlike=0,layer_step=") + step, 0.2).first == 24);
    CHECK_THROWS_WITH(found("commonkv:recent=50", 0.02), Contains("at least 3.2 %"));
    CHECK_THROWS_AS(found("commonkv:recent=50", 0.02), BudgetError);
    CHECK_THROWS_WITH(found("commonkv:rank=20,recent=50", 0.5), Contains("rank=20 needs 62.5 %"));
    CHECK_NOTHROW(found("commonkv:rank=20,recent=50", 0.63));
    CHECK_THROWS_WITH(found("commonkv:rank=25", 1.0), Contains("at most 24 directions"));
}

TEST_CASE("CommonKV refuses normalized keys and numbers that are not finite", "[commonkv]") {
    Prompt prompt;
    RunContext context = prompt.context(0.5);
    context.projection = [](int layer, Projected which) {
        Projection projection = projection_of(layer, which);
        projection.is_normalised = which == Projected::keys;
        return projection;
    };
    CHECK_THROWS_AS(parse_policy("commonkv").create()->begin(context), ParameterError);
    context.projection = {};
    const auto policy = parse_policy("commonkv").create();
    policy->begin(context);
    CHECK_THROWS_AS(policy->observe(*prompt.cache.observations[0]), std::logic_error);
    prompt.inputs[1][3 * hidden_size + 2] = NAN;
    CHECK_THROWS_WITH(prompt.select("commonkv:layer_step=2,recent=0", 0.5),
                      Contains("layers 0 to 1: the latent of token 3"));
}
