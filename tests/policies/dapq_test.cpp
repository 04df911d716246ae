// DapQ's pseudo tokens and S(j), computed by hand and by definition.
#include <catch2/catch.hpp>
#include <numeric>

#include "policies/methods/seeded_random.h"
#include "tests/policies/hand_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

using Ids = std::vector<int32_t>;

AppendedTokens appended_by(const std::string& parameters, const Ids& prompt, uint64_t seed = 0) {
    RunContext context;
    context.shape = {2, 2, 1, 8};
    context.n_tokens = static_cast<int64_t>(prompt.size());
    context.budget = 3;
    context.seed = seed;
    context.token_ids = prompt;
    context.n_vocabulary = 1000;
    // Tokenizes a text by words. A token is the length of its word.
    context.tokenize = [](std::string_view text) {
        Ids ids;
        for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
            end = std::min(text.find(' ', at), text.size());
            if (end > at) ids.push_back(static_cast<int32_t>(end - at));
        }
        return ids;
    };
    const auto policy = parse_policy("dapq:" + parameters).create();
    policy->begin(context);
    return policy.as<AppendsTokens>()->appended(context);
}

Ids ids_of(const std::string& parameters, const Ids& prompt, uint64_t seed = 0) {
    return appended_by(parameters, prompt, seed).ids;
}

const Ids prompt_ids{10, 11, 12, 13, 14, 15, 16, 17, 18, 19};

/// Softmax over the prompt's n keys and the appended ones up to each query's own, summed over the queries.
std::vector<double> summed_attention(const Layer& layer, int h, int64_t n_appended) {
    const int64_t n = layer.n_tokens, d = layer.shape.head_dim;
    Layer longer = layer;
    longer.n_tokens = n + n_appended;
    longer.keys.clear();
    for (int g = 0; g < layer.shape.n_kv_heads; ++g) {
        const float* of_head = layer.keys.data() + g * n * d;
        longer.keys.insert(longer.keys.end(), of_head, of_head + n * d);
        const float* appended = layer.appended_keys.data() + g * n_appended * d;
        longer.keys.insert(longer.keys.end(), appended, appended + n_appended * d);
    }
    std::vector<double> sums(static_cast<size_t>(n), 0.0);
    for (int64_t i = 0; i < n_appended; ++i) {
        const auto weights = longer.attention(h, layer.appended_queries.data() + (h * n_appended + i) * d, n + i + 1);
        for (size_t j = 0; j < sums.size(); ++j) sums[j] += weights[j];
    }
    return sums;
}

}  // namespace

TEST_CASE("dapq: pseudo tokens have the requested content", "[dapq]") {
    CHECK(ids_of("pseudo_tokens=5,first=2", prompt_ids) == Ids{10, 11, 17, 18, 19});
    CHECK(ids_of("pseudo_tokens=3,first=3", prompt_ids) == Ids{10, 11, 12});
    CHECK(ids_of("pseudo_tokens=3,first=0,last=3", prompt_ids) == Ids{17, 18, 19});
    // A short prompt is used cyclically, forwards from its start and backwards from its end.
    CHECK(ids_of("pseudo_tokens=9,first=4", {1, 2, 3}) == Ids{1, 2, 3, 1, 2, 3, 1, 2, 3});
    CHECK(ids_of("pseudo_tokens=8,first=4", {1, 2, 3}) == Ids{1, 2, 3, 1, 3, 1, 2, 3});
    CHECK(ids_of("pseudo_tokens=7,content=random-span", {1, 2, 3}) == Ids{1, 2, 3, 1, 2, 3, 1});
    // "Sorry, I don't know. Sorry, ...", and a phrase without a final space.
    CHECK(ids_of("pseudo_tokens=6,content=fixed-phrase", prompt_ids) == Ids{6, 1, 5, 5, 6, 1});
    CHECK(ids_of("pseudo_tokens=7,content=fixed-phrase,phrase=no way ever", prompt_ids) == Ids{2, 3, 4, 2, 3, 4, 2});
    CHECK_THROWS_AS(ids_of("content=fixed-phrase,phrase= ", prompt_ids), ParameterError);
}

TEST_CASE("dapq: drawn content depends only on the seed", "[dapq]") {
    for (const uint64_t seed : {0, 1, 77}) {
        SeededRandom tokens(seed), span(seed), vocabulary(seed);
        Ids expected;
        for (int i = 0; i < 6; ++i) expected.push_back(prompt_ids[static_cast<size_t>(tokens.below(10))]);
        CHECK(ids_of("pseudo_tokens=6,content=random-tokens", prompt_ids, seed) == expected);
        const auto start = static_cast<int32_t>(span.below(5));  // six of ten: five places
        std::iota(expected.begin(), expected.end(), 10 + start);
        CHECK(ids_of("pseudo_tokens=6,content=random-span", prompt_ids, seed) == expected);
        for (auto& id : expected) id = static_cast<int32_t>(vocabulary.below(1000));
        CHECK(ids_of("pseudo_tokens=6,content=vocabulary", prompt_ids, seed) == expected);
    }
    CHECK(ids_of("content=vocabulary", prompt_ids, 1) != ids_of("content=vocabulary", prompt_ids, 2));
}

TEST_CASE("dapq: pseudo tokens are at the positions of the answer or at the given offset", "[dapq]") {
    using Places = std::vector<int64_t>;
    CHECK(appended_by("pseudo_tokens=3,first=1", prompt_ids).positions == Places{10, 11, 12});
    CHECK(appended_by("pseudo_tokens=3,first=1,offset=-10", prompt_ids).positions == Places{0, 1, 2});
    CHECK(appended_by("pseudo_tokens=3,first=1,offset=5", prompt_ids).positions == Places{15, 16, 17});
    CHECK_THROWS_AS(appended_by("pseudo_tokens=3,first=1,offset=-11", prompt_ids), BudgetError);
    CHECK_THROWS_AS(appended_by("pseudo_tokens=3,first=1,last=1", prompt_ids), ParameterError);
    CHECK_THROWS_AS(appended_by("pseudo_tokens=3", prompt_ids), ParameterError);
}

TEST_CASE("dapq: scores and kept entries, computed by hand", "[dapq]") {
    // The appended tokens are copies of the prompt's first three. Their queries distribute 1 as given and see the same
    // keys again, so the sum becomes 1 + 0.4, 1 + 0.4 + 0.1 and 1 + 0.4 + 0.1 + 0.
    Cache cache = hand_cache({hand_layer({{{0, 0, 0, 0, 0, 0, 1}, {0.4, 0.1, 0, 0.05, 0.25, 0.2, 0}}}, 1)});
    const double shares = 1 / 1.4 + 2 / 1.5;
    const auto selection = select_all(parse_policy("dapq").create(), cache, 3)[0];
    CHECK(selection.rows == Rows{{0, 4, 5}});  // without a window, the last entry is evicted
    const std::vector<double> early{0.4, 0.1, 0, 0.05, 0.25, 0.2, 0};
    REQUIRE(selection.scores.size() == early.size());
    for (size_t j = 0; j < early.size(); ++j)
        CHECK(selection.scores[j] == Approx(early[j] * shares).epsilon(1e-5).margin(1e-9));
}

TEST_CASE("dapq: S(j) is the sum over the pseudo queries of their attention to the prompt", "[dapq]") {
    const ModelShape shape{3, 6, 2, 16};
    for (const std::string reduce : {"mean", "max", "sum"}) {
        Cache cache = random_cache(shape, 70, 21);
        const auto selections = select_all(parse_policy("dapq:reduce=" + reduce).create(), cache, 20);
        for (size_t l = 0; l < selections.size(); ++l) {
            for (int g = 0; g < shape.n_kv_heads; ++g) {
                std::vector<double> expected(70, 0.0);
                for (int h = g * shape.group(); h < (g + 1) * shape.group(); ++h) {
                    const auto sums = summed_attention(cache.layers[l], h, 3);
                    for (size_t j = 0; j < expected.size(); ++j)
                        expected[j] = reduce == "max" ? std::max(expected[j], sums[j]) : expected[j] + sums[j];
                }
                if (reduce == "mean") {
                    for (double& value : expected) value /= shape.group();
                }
                for (size_t j = 0; j < expected.size(); ++j) {
                    CAPTURE(reduce, l, g, j);
                    CHECK(selections[l].scores[static_cast<size_t>(g) * 70 + j] == Approx(expected[j]).epsilon(2e-5));
                }
            }
        }
    }
}
