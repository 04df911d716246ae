#include <catch2/catch.hpp>
#include <cmath>

#include "policies/methods/running_entry_averages.h"
#include "policies/registry/registry.h"
#include "policies/registry/validation.h"

using namespace kvscope::policies;

namespace {

/// A layer of one query head and one KV head of size 2, with entries of one token. The last ones have the least
/// attention.
struct Layer {
    std::vector<float> keys, gradients{};
    bool after_prompt = false;

    std::vector<float> values{}, masses{}, attention{}, outputs{0, 0};

    MergeObservations observations() {
        const size_t n = keys.size() / 2;
        values.assign(2 * n, 1.0f);
        masses.assign(n, 1.0f);
        attention.clear();
        for (size_t i = 0; i < n; ++i) attention.push_back(1.0f / static_cast<float>(i + 1));
        MergeObservations seen;
        seen.shape = {1, 1, 1, 2};
        seen.n_entries = static_cast<int64_t>(n);
        seen.keys = {keys.data(), kvscope::kernels::DType::f32, seen.n_entries * 2};
        seen.values = {values.data(), kvscope::kernels::DType::f32, seen.n_entries * 2};
        seen.masses = masses;
        seen.n_queries = 1;
        seen.attention = attention;
        seen.outputs = outputs;
        seen.after_prompt = after_prompt;
        seen.key_gradients = gradients;
        return seen;
    }
};

CreatedPolicy begun() {
    auto policy = parse_policy("asymkv:sinks=0").create();
    RunContext context;
    context.shape = {1, 1, 1, 2};
    context.n_tokens = 100;
    context.budget = 3;
    policy->begin(context);
    return policy;
}

Merges merged(const CreatedPolicy& policy, Layer layer) {
    const auto observations = layer.observations();
    Merges merges = policy.as<ReadsThroughOwnCache>()->merge(observations, 1);
    require_valid_merges("it", observations, 1, merges);
    return merges;
}

}  // namespace

TEST_CASE("keys are weighted by squared gradients, separately for each coordinate", "[asymkv]") {
    const auto policy = begun();
    CHECK(policy.as<ReadsThroughOwnCache>()->reading({}).key_gradients);
    const Merges merges = merged(policy, {{9, 9, 1, 10, 3, 20}, {5, 5, 1e-25f, -3, 3e-25f, 4}});
    CHECK(merges.first == std::vector<uint32_t>{1});
    // (1 * 1 + 9 * 3) / 10 and (9 * 10 + 16 * 20) / 25
    REQUIRE(merges.keys.size() == 2);
    CHECK(merges.keys[0] == Approx(2.8));
    CHECK(merges.keys[1] == Approx(16.4));
}

TEST_CASE("without gradients, the merged key is the mean", "[asymkv]") {
    CHECK(merged(begun(), {{9, 9, 1, 10, 3, 20}, {5, 5, 0, 0, 0, 0}}).keys == std::vector<float>{2, 15});
    CHECK(merged(begun(), {{9, 9, 1, 10, 3, 20}}).keys == std::vector<float>{2, 15});
}

TEST_CASE("gradients are averaged over chunks, follow their entries, and are added when entries merge", "[asymkv]") {
    const auto policy = begun();
    // Entries 1 and 2 merge. The gradients are now {4, 4}, {3, -1}.
    merged(policy, {{0, 0, 0, 0, 0, 0}, {4, 4, 1, 1, 2, -2}});
    // One entry was appended. The second chunk: {(4+0)/2, ..}, {(3+1)/2, (-1+3)/2}, and {1, 3} for the new one.
    const Merges merges = merged(policy, {{0, 0, 10, 10, 20, 20}, {0, 0, 1, 3, 1, 3}});
    REQUIRE(merges.first == std::vector<uint32_t>{1});
    CHECK(merges.keys[0] == Approx((4 * 10 + 1 * 20) / 5.0));
    CHECK(merges.keys[1] == Approx((1 * 10 + 9 * 20) / 10.0));
    // Further rounds of one chunk have no new gradients: {2, 2} and {3, 4} remain.
    const Merges again = merged(policy, {{10, 10, 20, 20}});
    CHECK(again.keys[0] == Approx((4 * 10 + 9 * 20) / 13.0));
    CHECK(again.keys[1] == Approx((4 * 10 + 16 * 20) / 20.0));
}

TEST_CASE("after the prompt, new entries use their chunk's gradient and others keep theirs", "[asymkv]") {
    const auto policy = begun();
    merged(policy, {{0, 0, 0, 0, 0, 0}, {4, 4, 1, 1, 2, -2}});
    Layer last{{0, 0, 10, 10, 20, 20}, {100, 100, 100, 100, 1, 3}};
    last.after_prompt = true;
    const Merges merges = merged(policy, last);
    CHECK(merges.keys[0] == Approx((9 * 10 + 1 * 20) / 10.0));
    CHECK(merges.keys[1] == Approx((1 * 10 + 9 * 20) / 10.0));
}

TEST_CASE("a gradient that is not finite is an error", "[asymkv]") {
    CHECK_THROWS_AS(merged(begun(), {{0, 0, 0, 0}, {0, 0, NAN, 0}}), ScoreError);
    CHECK_THROWS_WITH(merged(begun(), {{0, 0, 0, 0}, {0, 0, INFINITY, 0}}),
                      Catch::Matchers::Contains("entry 1, KV head 0"));
}
