#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <thread>
#include <vector>

#include "policies/api/policy_errors.h"
#include "policies/registry/registry.h"
#include "tests/policies/random_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

TEST_CASE("a value that follows from weights is computed once, by the first caller", "[memo]") {
    ModelMemo memo;
    std::atomic<int> n_made = 0;
    const auto make = [&]() -> std::vector<int> {
        ++n_made;
        return {1, 2, 3};
    };
    std::vector<std::shared_ptr<const std::vector<int>>> found(8);
    std::vector<std::thread> threads;
    for (auto& one : found) threads.emplace_back([&] { one = memo.get<std::vector<int>>("numbers", make); });
    for (auto& thread : threads) thread.join();
    CHECK(n_made == 1);
    for (const auto& one : found) CHECK(one == found[0]);
    CHECK(memo.get<std::vector<int>>("others", make) != found[0]);
    CHECK(*memo.get<int>("numbers", [] { return 4; }) == 4);  // of another type
}

TEST_CASE("a failed computation is tried again", "[memo]") {
    ModelMemo memo;
    CHECK_THROWS_AS(memo.get<int>("n", []() -> int { throw ScoreError("not finite"); }), ScoreError);
    CHECK(*memo.get<int>("n", [] { return 2; }) == 2);
}

TEST_CASE("a policy that depends on weights reads them once, before the prompt, and decides the same without a memo",
          "[memo]") {
    constexpr size_t hidden = 64, out = 32;
    const ModelShape shape{4, 4, 2, 16};
    Cache cache = random_cache(shape, 60, 3);
    std::vector<std::vector<float>> inputs;
    for (size_t layer = 0; layer < cache.observations.size(); ++layer) {
        std::mt19937 random(static_cast<unsigned>(layer));
        std::normal_distribution<float> normal;
        auto& of_layer = inputs.emplace_back(60 * hidden);
        for (float& value : of_layer) value = normal(random);
        cache.observations[layer]->projection_inputs = of_layer;
        cache.observations[layer]->keys_before_rope = cache.observations[layer]->keys;
    }
    int n_looked = 0;
    const auto select = [&](const char* policy, double share, const std::shared_ptr<ModelMemo>& memo) {
        RunContext context = cache.context(30);
        context.budget_share = share;
        context.memo = memo;
        context.projection = [&](int layer, Projected which) {
            ++n_looked;
            std::mt19937 random(static_cast<unsigned>(10 * layer + (which == Projected::keys ? 1 : 2)));
            std::normal_distribution<float> normal;
            Projection projection{.n_out = out, .n_in = hidden, .weight = std::vector<float>(out * hidden), .bias = {}};
            for (float& value : projection.weight) value = normal(random);
            return projection;
        };
        const auto made = parse_policy(policy).create();
        made->begin(context);
        auto* prepares = made.as<PreparesWeights>();
        REQUIRE(prepares != nullptr);
        CHECK(prepares->prepares());
        if (memo)
            for (int layer = 0; layer < shape.n_layers; ++layer) prepares->prepare(layer);
        return select_all(made, cache);
    };
    for (const char* policy : {"palu:whitening=off", "commonkv:layer_step=2,recent=8,sinks=2"}) {
        INFO(policy);
        const auto memo = std::make_shared<ModelMemo>();
        n_looked = 0;
        const auto alone = select(policy, 0.7, nullptr);
        const int n_alone = n_looked;
        const auto first = select(policy, 0.7, memo);
        n_looked = 0;
        const auto again = select(policy, 0.7, memo);
        const auto smaller = select(policy, 0.5, memo);
        CHECK(n_looked < 2 * n_alone);
        for (const auto* of : {&first, &again})
            for (size_t layer = 0; layer < alone.size(); ++layer) {
                REQUIRE(of->at(layer).stored);
                const auto &blocks = of->at(layer).stored->blocks, &expected = alone[layer].stored->blocks;
                REQUIRE(blocks.size() == expected.size());
                for (size_t i = 0; i < blocks.size(); ++i) CHECK(blocks[i]->numbers == expected[i]->numbers);
            }
        REQUIRE(smaller[0].stored);
        CHECK(smaller[0].stored->blocks.at(0)->width < alone[0].stored->blocks.at(0)->width);
    }
}
