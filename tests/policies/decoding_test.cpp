#include <catch2/catch.hpp>
#include <map>

#include "policies/registry/registry.h"
#include "tests/policies/random_cache.h"
#include "tests/policies/throwaway_policies.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

/// Rows of one layer during decoding: positions in storage order.
struct Storage {
    std::vector<std::vector<uint32_t>> rows;

    /// Appends a token, shows the policy `attention(row, query head, position)`, and drops the entries that it evicts.
    template <class Attention>
    void step(const CreatedPolicy& policy, int64_t step, int64_t position, int group, Attention attention) {
        StepObservations observations;
        observations.step = step;
        observations.position = position;
        std::vector<std::vector<float>> weights(rows.size());
        for (size_t r = 0; r < rows.size(); ++r) {
            rows[r].push_back(static_cast<uint32_t>(position));
            for (int q = 0; q < group; ++q) {
                for (uint32_t p : rows[r]) weights[r].push_back(attention(r, q, p));
            }
            observations.rows.push_back({rows[r], weights[r], group});
        }
        const StepEvictions evictions = policy.as<EvictsWhileDecoding>()->step(observations);
        REQUIRE((evictions.empty() || evictions.size() == rows.size()));
        for (size_t r = 0; r < evictions.size(); ++r) {
            for (auto i = evictions[r].rbegin(); i != evictions[r].rend(); ++i) rows[r].erase(rows[r].begin() + *i);
        }
    }
};

float uniform(size_t, int, uint32_t) { return 0.1f; }

}  // namespace

TEST_CASE("rolling StreamingLLM keeps sinks and the last entries within the budget", "[decoding]") {
    Cache cache = random_cache({1, 4, 2, 8}, 20, 1);
    const CreatedPolicy policy = parse_policy("streaming-llm:sinks=2,rolling=on").create();
    CHECK(policy.as<EvictsWhileDecoding>() != nullptr);
    CHECK(parse_policy("streaming-llm").create().as<EvictsWhileDecoding>() == nullptr);
    Storage storage{select_all(policy, cache, 6)[0].rows};
    for (int64_t t = 0; t < 5; ++t) storage.step(policy, t, 20 + t, 2, uniform);
    for (const auto& row : storage.rows) CHECK(row == std::vector<uint32_t>{0, 1, 21, 22, 23, 24});
}

TEST_CASE("a rolling cache below the budget fills up first", "[decoding]") {
    Cache cache = random_cache({1, 4, 2, 8}, 4, 1);
    const CreatedPolicy policy = parse_policy("streaming-llm:sinks=1,rolling").create();
    Storage storage{select_all(policy, cache, 6)[0].rows};
    for (int64_t t = 0; t < 4; ++t) storage.step(policy, t, 4 + t, 2, uniform);
    for (const auto& row : storage.rows) CHECK(row == std::vector<uint32_t>{0, 3, 4, 5, 6, 7});
}

TEST_CASE("a question read after the compression stays whole and does not count in the budget", "[decoding]") {
    Cache cache = random_cache({1, 4, 2, 8}, 20, 1);
    for (const char* name : {"streaming-llm:sinks=2,rolling=on", "h2o:recent=2,rolling=on"}) {
        CAPTURE(name);
        const CreatedPolicy policy = parse_policy(name).create();
        Storage storage{select_all(policy, cache, 6)[0].rows};
        for (auto& row : storage.rows) {
            for (uint32_t p : {20u, 21u, 22u}) row.push_back(p);  // the question
        }
        for (int64_t t = 0; t < 12; ++t) storage.step(policy, t, 23 + t, 2, uniform);
        for (const auto& row : storage.rows) {
            CHECK(row.size() == 9);
            for (uint32_t p : {20u, 21u, 22u}) CHECK(std::count(row.begin(), row.end(), p) == 1);
            for (uint32_t p : {33u, 34u}) CHECK(std::count(row.begin(), row.end(), p) == 1);
        }
    }
}

TEST_CASE("rolling H2O adds the attention of prompt and decoding", "[decoding]") {
    // One KV head, two query heads, with given sums.
    const ModelShape shape{1, 2, 1, 4};
    LayerObservations observations;
    observations.shape = shape;
    observations.n_tokens = 6;
    const std::vector<float> sums{5, 1, 2, 4, 3, 1, /**/ 5, 1, 2, 2, 3, 1};
    observations.attention_sums = sums;
    const CreatedPolicy policy = parse_policy("h2o:recent=1,rolling=on").create();
    RunContext context;
    context.shape = shape;
    context.n_tokens = 6;
    context.budget = 4;
    policy->begin(context);
    const Selection selection = policy->select(observations);
    REQUIRE(selection.rows[0] == std::vector<uint32_t>{0, 3, 4, 5});  // means 5, 3, 3, and the recent entry
    for (int answer = 0; answer < 2; ++answer) {                      // the second answer starts from the same sums
        Storage storage{selection.rows};
        // Step 0: entry 5 gains 4 (mean 1 + 4 = 5). Entries 3 and 4 tie at 3, so the lower index is evicted.
        storage.step(policy, 0, 6, 2, [](size_t, int, uint32_t p) { return p == 5 ? 4.0f : 0.0f; });
        CHECK(storage.rows[0] == std::vector<uint32_t>{0, 4, 5, 6});
        // Step 1: entry 4 gains 9 in one query head (mean 3 + 4.5). Entry 6 has sum 0 and is no longer recent, so it is
        // evicted.
        storage.step(policy, 1, 7, 2, [](size_t, int q, uint32_t p) { return p == 4 && q == 1 ? 9.0f : 0.0f; });
        CHECK(storage.rows[0] == std::vector<uint32_t>{0, 4, 5, 7});
    }
}

TEST_CASE("rolling budgets hold over many steps, and rows stay ascending", "[decoding]") {
    Cache cache = random_cache({1, 4, 2, 8}, 50, 3);
    for (const char* name : {"streaming-llm:rolling=on", "h2o:rolling=on", "h2o:rolling=on,recent=0,reduce=max",
                             "h2o:rolling=on,granularity=query_head"}) {
        CAPTURE(name);
        const CreatedPolicy policy = parse_policy(name).create();
        Storage storage{select_all(policy, cache, 16)[0].rows};
        const int group = 4 / static_cast<int>(storage.rows.size());
        for (int64_t t = 0; t < 60; ++t) {
            storage.step(policy, t, 50 + t, group,
                         [t](size_t r, int q, uint32_t p) { return static_cast<float>((p * 7 + r * 3 + q + t) % 11); });
            for (const auto& row : storage.rows) {
                REQUIRE(row.size() == 16);
                REQUIRE(std::is_sorted(row.begin(), row.end()));
            }
        }
    }
}

TEST_CASE("a rolling budget must hold the protected entries, even for short prompts", "[decoding]") {
    RunContext context;
    context.shape = {1, 2, 1, 4};
    context.n_tokens = 3;
    context.budget = 4;
    CHECK_THROWS_AS(parse_policy("streaming-llm:rolling=on").create()->begin(context), BudgetError);
    CHECK_NOTHROW(parse_policy("streaming-llm").create()->begin(context));
    CHECK_THROWS_AS(parse_policy("h2o:rolling=on,recent=4").create()->begin(context), BudgetError);
}

TEST_CASE("a cache's form follows its switches", "[switching]") {
    const StorageSwitching never = parse_storage_switching("compressed", ""),
                           once = parse_storage_switching("full", "3"),
                           often = parse_storage_switching("compressed", "0/2/5");
    for (const int64_t step : {0, 1, 7}) CHECK_FALSE(never.is_full_at(step));
    CHECK(once.is_full_at(-1));
    CHECK(once.is_full_at(2));
    CHECK_FALSE(once.is_full_at(3));
    CHECK_FALSE(often.is_full_at(-1));
    CHECK(often.is_full_at(0));
    CHECK(often.is_full_at(1));
    CHECK_FALSE(often.is_full_at(4));
    CHECK(often.is_full_at(5));
    CHECK(often.until(5).steps == std::vector<int64_t>{0, 2});
    StorageSwitching asked = often;
    asked.change_at(4);
    CHECK(asked.steps == std::vector<int64_t>{0, 2, 4});
    asked.change_at(2);  // already scheduled
    CHECK(asked.steps == std::vector<int64_t>{0, 2});
    asked.change_at(9);
    CHECK(asked.steps == std::vector<int64_t>{0, 2, 9});
    for (const char* text : {"a", "1/", "/1", "1//2", "2/1", "2/2", "-1", "1,2", "1.5", "99999999999999999999", " 1"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(parse_storage_switching("compressed", text), ParameterError);
    }
}
