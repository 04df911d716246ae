#include <catch2/catch.hpp>

#include "tests/policies/hand_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

std::vector<Rows> drawn(const char* policy, Cache& cache, const RunContext& context) {
    const auto object = parse_policy(policy).create();
    object->begin(context);
    std::vector<Rows> kept;
    for (const auto& layer : cache.observations) kept.push_back(object->select(*layer).rows);
    return kept;
}

}  // namespace

TEST_CASE("random: the choice depends only on seed, prompt, layer and head", "[random]") {
    Cache cache = random_cache({2, 4, 2, 8}, 60, 1);
    Cache other = random_cache({2, 4, 2, 8}, 60, 2);
    RunContext context = cache.context(20);
    const auto first = drawn("random", cache, context);
    CHECK(drawn("random", other, context) == first);
    CHECK(first[0][0] != first[0][1]);
    CHECK(first[0][0] != first[1][0]);
    const auto with_parameter = drawn("random:seed=3", cache, context);
    CHECK(with_parameter != first);
    CHECK(drawn("random:seed=0", cache, context) == first);
    context.seed = 1;
    CHECK(drawn("random", cache, context) != first);
    CHECK(drawn("random:seed=2", cache, context) == with_parameter);
    context.seed = 3;
    CHECK(drawn("random", cache, context) == with_parameter);
    context.seed = 0;
    const std::vector<int32_t> ids(60, 7);
    context.token_ids = ids;
    CHECK(drawn("random", cache, context) != first);
    const auto shared = drawn("random:shared", cache, context);
    CHECK(shared[0][0] == shared[0][1]);
    CHECK(shared[0] == shared[1]);
}

TEST_CASE("random: every position is kept equally often", "[random]") {
    Cache cache = random_cache({1, 1, 1, 8}, 40, 1);
    std::vector<int> times(40, 0);
    RunContext context = cache.context(10);
    for (context.seed = 0; context.seed < 4000; ++context.seed) {
        const auto layers = drawn("random", cache, context);
        for (uint32_t position : layers[0][0]) ++times[position];
    }
    // 1,000 of 4,000 draws with p = 1/4 have a standard deviation of 27.
    for (int kept : times) CHECK((kept > 865 && kept < 1135));
}
