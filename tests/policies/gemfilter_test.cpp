// GemFilter's choice of tokens, computed by hand.
#include <catch2/catch.hpp>

#include "tests/policies/hand_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

/// Two KV heads with two query heads each. The last query is `query` times the first unit vector in each head; earlier
/// queries differ. `keys` are the first coordinates of the keys.
Cache cache_of(const std::vector<float>& query, const std::vector<std::vector<float>>& keys) {
    constexpr int64_t d = 8;
    Layer layer;
    layer.shape = {1, static_cast<int>(query.size()), static_cast<int>(keys.size()), d};
    layer.n_tokens = static_cast<int64_t>(keys[0].size());
    for (const auto& head : keys) {
        for (const float key : head) {
            layer.keys.insert(layer.keys.end(), {key, -key, 0, 0, 0, 0, 0, 0});
        }
    }
    for (const float factor : query) {
        for (int64_t i = 0; i < layer.n_tokens; ++i) {
            std::vector<float> of_token(d, 0.0f);
            of_token[i + 1 < layer.n_tokens] = factor;
            layer.queries.insert(layer.queries.end(), of_token.begin(), of_token.end());
        }
    }
    layer.values = layer.keys;
    return hand_cache({layer});
}

}  // namespace

TEST_CASE("gemfilter: products of the last query, summed over all heads, decide for all heads", "[gemfilter]") {
    // Sums of products: 2 k0 + 1 k1, where k0 and k1 are the keys of the two heads.
    Cache cache = cache_of({3, -1, 0.5, 0.5}, {{1, 0, -2, 4, 0, 1, 0}, {1, 3, 5, -9, 1, -5, 0}});
    // The sums are 3, 3, 1, -1, 1, -3; the last token is always kept.
    CHECK(kept_by("gemfilter:kernel=1", cache, 3)[0] == Rows{{0, 1, 6}, {0, 1, 6}});
    // The lower position wins the tie.
    CHECK(kept_by("gemfilter:kernel=1", cache, 4)[0] == Rows{{0, 1, 2, 6}, {0, 1, 2, 6}});
    CHECK(kept_by("gemfilter:kernel=1", cache, 1)[0] == Rows{{6}, {6}});
    CHECK(kept_by("gemfilter:kernel=1", cache, 7)[0] == Rows{{0, 1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6}});
}

TEST_CASE("gemfilter: average pooling treats values beyond the ends as zero and includes the last token",
          "[gemfilter]") {
    Cache cache = cache_of({1, 0}, {{6, 1, 1, 5, 1, 1, 6}});
    // Sums over three positions: 7, 8, 7, 7, 7, 8.
    CHECK(kept_by("gemfilter:kernel=3", cache, 3)[0] == Rows{{1, 5, 6}});
    CHECK(kept_by("gemfilter:kernel=3", cache, 4)[0] == Rows{{0, 1, 5, 6}});
}

TEST_CASE("gemfilter: filters after the given layer, or at 13 L / 32", "[gemfilter]") {
    const auto layer_of = [](const char* policy, int n_layers) {
        RunContext context;
        context.shape = {n_layers, 2, 1, 8};
        context.n_tokens = 9;
        context.budget = 4;
        return std::get<FilterLayer>(parse_policy(policy).create().as<FiltersPrompt>()->filter(context)).layer;
    };
    CHECK(layer_of("gemfilter", 32) == 13);
    CHECK(layer_of("gemfilter", 30) == 12);
    CHECK(layer_of("gemfilter", 28) == 11);
    CHECK(layer_of("gemfilter", 1) == 0);
    CHECK(layer_of("gemfilter:layer=5", 30) == 5);
}
