// CaM's additions to kept values, computed by hand and by definition.
#include <catch2/catch.hpp>

#include "policies/methods/seeded_random.h"
#include "tests/policies/hand_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

/// One layer in which token j has the value (j + 1) (1, 2, 3, …), with the given attention sums.
Cache cache_of(const std::vector<std::vector<float>>& attention) {
    Cache cache = hand_cache(
        {hand_layer(std::vector<HeadWeights>(attention.size(), {{std::vector<double>(attention[0].size(), 1.0)}}), 1)});
    Layer& layer = cache.layers[0];
    const auto n = static_cast<size_t>(layer.n_tokens), d = static_cast<size_t>(layer.shape.head_dim);
    for (size_t head = 0; head < attention.size(); ++head) {
        for (size_t j = 0; j < n; ++j) {
            layer.attention_sums[head * n + j] = attention[head][j];
            for (size_t c = 0; c < d; ++c)
                layer.values[(head * n + j) * d + c] = static_cast<float>(c + 1) * static_cast<float>(j + 1);
        }
    }
    return cache;
}

struct Merged {
    std::vector<uint32_t> kept;
    std::vector<float> first;   ///< the first coordinate of each kept value
    std::vector<float> values;  ///< (kept, d)
};

Merged merge(const std::string& parameters, Cache& cache, int64_t budget, int row = 0, uint64_t seed = 0) {
    const auto policy = parse_policy("cam:" + parameters).create();
    RunContext context = cache.context(budget);
    context.seed = seed;
    policy->begin(context);
    LayerObservations& observations = *cache.observations[0];
    const Selection selection = policy->select(observations);
    REQUIRE(policy.as<MergesValues>() != nullptr);
    Merged merged;
    merged.kept = selection.rows[static_cast<size_t>(row)];
    const int head = row * cache.layers[0].shape.n_kv_heads / static_cast<int>(selection.rows.size());
    const auto d = static_cast<size_t>(cache.layers[0].shape.head_dim);
    merged.values.resize(merged.kept.size() * d);
    for (size_t i = 0; i < merged.kept.size(); ++i)
        read_entry(observations.values, head, merged.kept[i], static_cast<int>(d), merged.values.data() + i * d);
    policy.as<MergesValues>()->merge_values(observations, selection, row, merged.values);
    for (size_t i = 0; i < merged.kept.size(); ++i) merged.first.push_back(merged.values[i * d]);
    return merged;
}

using Kept = std::vector<uint32_t>;

}  // namespace

TEST_CASE("cam: a certain merge adds 1 / m to each of the next m kept values; an impossible one adds nothing",
          "[cam]") {
    // With 4 entries, two of them recent, 0, 3, 6, 7 are kept. Token 4 exceeds the mean of 6 and 7 and is surely merged
    // into them. Tokens 1, 2 and 5 have no attention and are never merged.
    Cache cache = cache_of({{9, 0, 0, 8, 1, 0, 0.25f, 0.5f}});
    const Merged merged = merge("recent=2,merge=2,denominator=mean", cache, 4);
    CHECK(merged.kept == Kept{0, 3, 6, 7});
    CHECK(merged.first == std::vector<float>{1, 4, 7 + 2.5f, 8 + 2.5f});
    // All coordinates are equal.
    for (size_t i = 0; i < merged.values.size(); ++i)
        CHECK(merged.values[i] == Approx(merged.first[i / 8] * static_cast<float>(i % 8 + 1)));
    // With m = 1, one kept value takes everything. With m = 3, only the last entries follow.
    CHECK(merge("recent=2,merge=1,denominator=mean", cache, 4).first == std::vector<float>{1, 4, 7 + 5, 8});
    const auto few = merge("recent=2,merge=4,denominator=mean", cache, 4).first;
    CHECK(few == std::vector<float>{1, 4, 7 + 1.25f, 8 + 1.25f});
}

TEST_CASE("cam: an evicted value is added unchanged, regardless of earlier merges", "[cam]") {
    // With 3 entries, two of them recent, 4, 6, 7 are kept. All others have at least as much attention as the protected
    // entries.
    Cache cache = cache_of({{1, 1, 1, 1, 9, 5, 1, 1}});
    const Merged merged = merge("recent=2,merge=2,denominator=max", cache, 3);
    CHECK(merged.kept == Kept{4, 6, 7});
    const float four = (1 + 2 + 3 + 4) / 2.0f;  // tokens 0 to 3 into 4 and 6, token 5 into 6 and 7
    CHECK(merged.first == std::vector<float>{5 + four, 7 + four + 3, 8 + 3});
}

TEST_CASE("cam: values without a later kept entry are lost", "[cam]") {
    Cache cache = cache_of({{9, 8, 7, 1, 1, 1}});
    CHECK(merge("recent=0,merge=2", cache, 3).first == std::vector<float>{1, 2, 3});
}

TEST_CASE("cam: each evicted entry is drawn once, in order, for each head", "[cam]") {
    const std::vector<std::vector<float>> attention{{6, .3f, .4f, 5, .2f, .5f, .1f, 1, 2, .5f},
                                                    {5, .2f, 6, .3f, .4f, .1f, .6f, 1, 1, 2}};
    int n_merged = 0, n_evicted = 0;
    for (const std::string denominator : {"mean", "max"}) {
        for (uint64_t seed = 0; seed < 20; ++seed) {
            for (int row = 0; row < 2; ++row) {
                Cache cache = cache_of(attention);
                const auto& a = attention[static_cast<size_t>(row)];
                const Merged merged = merge("recent=3,merge=2,denominator=" + denominator, cache, 5, row, seed);
                std::vector<float> expected;
                for (const uint32_t j : merged.kept) expected.push_back(static_cast<float>(j + 1));
                SeededRandom random = row_random(seed, 0, row);
                for (uint32_t j = 0; j < a.size(); ++j) {
                    size_t next = 0;
                    while (merged.kept[next] < j) ++next;
                    if (merged.kept[next] == j) continue;
                    // At least three kept entries follow, so both receiving entries exist.
                    const double mean = (double(a[merged.kept[next]]) + double(a[merged.kept[next + 1]])) / 2;
                    constexpr double largest = 6;  // of the first four and the recent entries, in both heads
                    ++n_evicted;
                    if (random.unit() >= a[j] / (denominator == "mean" ? mean : largest)) continue;
                    ++n_merged;
                    for (const size_t i : {next, next + 1}) expected[i] += static_cast<float>(j + 1) / 2;
                }
                CAPTURE(denominator, seed, row);
                CHECK(merged.first == expected);
            }
        }
    }
    CHECK(n_merged > n_evicted / 20);
    CHECK(n_merged < n_evicted / 2);
}

TEST_CASE("cam: keeps the same entries as h2o", "[cam]") {
    Cache cache = random_cache({2, 6, 2, 16}, 60, 9);
    for (const std::string settings : {"recent=5", "reduce=max", "recent=0", "granularity=query_head"})
        CHECK(kept_by(("cam:" + settings).c_str(), cache, 20) == kept_by(("h2o:" + settings).c_str(), cache, 20));
}
