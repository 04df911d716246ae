// HeadKV's budgets, computed by hand, and error messages for unusable importance files.
#include <catch2/catch.hpp>

#include "policies/methods/head_importance.h"
#include "tests/policies/hand_cache.h"
#include "tests/policies/importance_file.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;
using Catch::Matchers::Contains;

namespace {

/// Number of entries that each head of each layer keeps.
std::vector<std::vector<size_t>> sizes(const std::string& importance, const std::string& parameters, Cache& cache,
                                       int64_t budget) {
    const ImportanceFile file(importance);
    PolicySpec spec = parse_policy("headkv:" + parameters);
    spec.values.set("importance", file.path());
    std::vector<std::vector<size_t>> all;
    for (const Rows& layer : kept_by(spec, cache, budget)) {
        all.emplace_back();
        for (const auto& row : layer) all.back().push_back(row.size());
    }
    return all;
}

using Sizes = std::vector<std::vector<size_t>>;

}  // namespace

TEST_CASE("headkv: entries go to KV heads by the importance of their query heads", "[headkv]") {
    Cache cache = random_cache({1, 4, 2, 8}, 30, 3);
    // Means 0.2, 0.2, 0.1, 0.5 give 0.4 and 0.6. c = 10 and beta = 2: 5 for each head, then 0.4 and 0.6 of 10.
    const std::string file = R"({"0-0": [0.3, 0.1], "0-3": [0.5], "0-1": [0.2, 0.2, 0.2], "0-2": [0.1]})";
    CHECK(sizes(file, "window=2,beta=2", cache, 12) == Sizes{{9 + 2, 11 + 2}});
    // Squared: 0.08 and 0.26 of 0.34. 5 + 2.35 and 5 + 7.65: the larger fraction is rounded up.
    CHECK(sizes(file, "window=2,beta=2,temperature=2", cache, 12) == Sizes{{7 + 2, 13 + 2}});
    CHECK(sizes(file, "window=2,beta=2,temperature=0", cache, 12) == Sizes{{10 + 2, 10 + 2}});
    CHECK(sizes(file, "window=2,beta=1000", cache, 12) == Sizes{{10 + 2, 10 + 2}});
    // Each query head separately: 4 heads, 20 of 40 entries by importance.
    CHECK(sizes(file, "window=2,beta=2,granularity=query_head", cache, 12) == Sizes{{11, 11, 9, 17}});
}

TEST_CASE("headkv: layers share one pool, and no head gets more than the prefix", "[headkv]") {
    Cache cache = random_cache({2, 1, 1, 8}, 10, 3);
    // c = 6, b = 5: 1 + 10 and 1 + 0, but only 8 of the 11 exist.
    CHECK(sizes(R"({"0-0": [1], "1-0": [0]})", "window=2", cache, 8) == Sizes{{8 + 2}, {4 + 2}});
    CHECK(sizes(R"({"0-0": [1], "1-0": [0]})", "window=2", cache, 10) == Sizes{{10}, {10}});
}

TEST_CASE("headkv: without an importance file, the message says how to create one", "[headkv]") {
    Cache cache = random_cache({1, 2, 1, 8}, 30, 3);
    const auto policy = parse_policy("headkv:window=2").create();
    CHECK_THROWS_AS(policy->begin(cache.context(10)), std::invalid_argument);
    CHECK_THROWS_WITH(policy->begin(cache.context(10)), Contains("kvscope profile-heads"));
    CHECK_THROWS_WITH(parse_policy("headkv:window=2,importance=no/such.json").create()->begin(cache.context(10)),
                      Contains("no/such.json") && Contains("does not exist"));
}

TEST_CASE("unsuitable importance files are refused with the expected and the found content", "[headkv]") {
    const ModelShape shape{2, 2, 1, 8};
    const auto refusal = [&](const std::string& text) {
        const ImportanceFile file(text);
        try {
            read_head_importance(file.path(), shape);
        } catch (const ImportanceError& error) {
            CHECK_THAT(error.what(), Contains(file.path()));
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    CHECK(refusal(R"({"0-0": [1], "0-1": [0], "1-0": [2], "1-1": [3]})") == "accepted");
    CHECK_THAT(refusal("importance"), Contains("found invalid JSON"));
    CHECK_THAT(refusal(""), Contains("found invalid JSON"));
    CHECK_THAT(refusal("[1, 2]"), Contains("found array"));
    CHECK_THAT(refusal(R"({"0-0": [1], "0-1": [0]})"),
               Contains("2 layers of 2 heads") && Contains("found 2 heads") && Contains("\"1-0\""));
    CHECK_THAT(refusal(R"({"0-0": [1], "2-1": [0]})"), Contains("another model") && Contains("layer 2, head 1"));
    CHECK_THAT(refusal(R"({"0-2": [1]})"), Contains("layer 0, head 2"));
    for (const char* key : {"", "-", "0", "0-", "-0", "a-b", "0-1x", "0--1", "99999999999-0"}) {
        CHECK_THAT(refusal("{\"" + std::string(key) + "\": [1]}"), Contains("layer-head"));
    }
    CHECK_THAT(refusal(R"({"0-0": 1})"), Contains("\"0-0\"") && Contains("found number"));
    CHECK_THAT(refusal(R"({"0-0": []})"), Contains("found an empty list"));
    CHECK_THAT(refusal(R"({"0-0": [1, -0.5]})"), Contains("found -0.5"));
    CHECK_THAT(refusal(R"({"0-0": [1, null]})"), Contains("found null"));
    CHECK_THAT(refusal(R"({"0-0": [0], "0-1": [0], "1-0": [0], "1-1": [0]})"), Contains("found only 0"));
}
