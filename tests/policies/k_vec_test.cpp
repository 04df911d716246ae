// K-VEC (Algorithm 1 of its paper) on attention given by hand.
#include <catch2/catch.hpp>

#include "policies/methods/score_dispersion.h"
#include "tests/policies/hand_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

/// Two layers of one head with the same attention, and two window tokens without attention.
Cache two_layers() {
    const std::vector<HeadWeights> head{{{0.4, 0.25, 0.2, 0.15, 0, 0, 0, 0}}};
    return hand_cache({hand_layer(head, 8), hand_layer(head, 8)});
}

}  // namespace

TEST_CASE("standard deviation and entropy of a head's scores", "[k-vec]") {
    CHECK(standard_deviation(std::vector<float>{1, 3, 5, 7}) == Approx(std::sqrt(5.0)));
    CHECK(standard_deviation(std::vector<float>{}) == 0.0);
    CHECK(entropy(std::vector<float>{0.1f, 0.1f, 0.0f, 0.0f}) == Approx(std::log(2.0)));
    CHECK(entropy(std::vector<float>{2, 2, 2, 2}) == Approx(std::log(4.0)));
    CHECK(entropy(std::vector<float>{0, 0}) == 0.0);
}

TEST_CASE("k-vec: a token kept in the layer below is replaced by one that no layer kept", "[k-vec]") {
    Cache cache = two_layers();
    const std::string base = "k-vec:window=2,pooling=none,cross_head=off";
    const auto kept = [&](const std::string& more) { return kept_by((base + more).c_str(), cache, 4); };
    // B = 4: one token is preserved (beta), and one more is chosen. In layer 1, 0.25 + 0.25 / 2 < 0.2 + 0.2.
    CHECK(kept("") == std::vector<Rows>{{{0, 1, 6, 7}}, {{0, 2, 6, 7}}});
    // With a fifth of the focus term, 0.25 + 0.05 / 2 > 0.2 + 0.04.
    CHECK(kept(",lambda=0.2") == std::vector<Rows>{{{0, 1, 6, 7}}, {{0, 1, 6, 7}}});
    // Without preserved tokens, layer 1 has 0.4 + 0.2, 0.25 + 0.125, 0.2 + 0.2, 0.15 + 0.15, with the same result.
    CHECK(kept(",beta=0") == std::vector<Rows>{{{0, 1, 6, 7}}, {{0, 2, 6, 7}}});
    // If both slots are preserved, attention alone decides, as without the module.
    CHECK(kept(",beta=0.5") == std::vector<Rows>{{{0, 1, 6, 7}}, {{0, 1, 6, 7}}});
    CHECK(kept(",cross_layer=off") == std::vector<Rows>{{{0, 1, 6, 7}}, {{0, 1, 6, 7}}});
    // A large weight of the focus term does not displace the preserved token.
    CHECK(kept(",lambda=10") == std::vector<Rows>{{{0, 1, 6, 7}}, {{0, 2, 6, 7}}});
}

TEST_CASE("k-vec: preserved tokens have score 1, all others less", "[k-vec]") {
    Cache cache = two_layers();
    const auto spec = parse_policy("k-vec:window=2,pooling=none,cross_head=off");
    const auto scores = select_all(spec.create(), cache, 4)[1].scores;
    CHECK(scores[0] == 1.0f);
    CHECK(scores[1] == Approx(0.375));
    CHECK(scores[2] == Approx(0.4));
    CHECK(scores[3] == Approx(0.3));
    CHECK(std::isnan(scores[6]));
    const auto strong = parse_policy("k-vec:window=2,pooling=none,cross_head=off,lambda=10");
    for (const Selection& layer : select_all(strong.create(), cache, 4)) {
        CHECK(layer.scores[0] == 1.0f);
        for (int t : {1, 2, 3}) CHECK((layer.scores[t] > 0.8f && layer.scores[t] < 1.0f));
    }
}

TEST_CASE("k-vec: a layer counts once in a token's coverage, whichever heads kept the token", "[k-vec]") {
    // Head 0 attends to tokens 0 and 1, head 1 to 1 and 2, and both keep 1 in layer 0. In layer 1, importance is the
    // larger attention of the two heads, and kept tokens have coverage 1/2 for both heads.
    const std::vector<HeadWeights> heads{{{0.25, 0.2, 0, 0.05, 0, 0.5}}, {{0, 0.25, 0.2, 0, 0.05, 0.5}}};
    Cache cache = hand_cache({hand_layer(heads, 6, 2), hand_layer(heads, 6, 2)});
    const auto selections =
        select_all(parse_policy("k-vec:window=1,pooling=none,beta=0,cross_head=off").create(), cache, 3);
    CHECK(selections[0].rows == Rows{{0, 1, 5}, {1, 2, 5}});
    const auto& scores = selections[1].scores;
    CHECK(scores[0] == Approx(0.25 + 0.25 / 2));
    CHECK(scores[1] == Approx(0.2 + 0.25 / 2));
    CHECK(scores[2] == Approx(0.2 / 2));
    CHECK(scores[3] == Approx(0.05 + 0.05));
    CHECK(scores[6 + 0] == Approx(0.25 / 2));
    CHECK(scores[6 + 2] == Approx(0.2 + 0.2 / 2));
    CHECK(scores[6 + 4] == Approx(0.05 + 0.05));
    // Scores above 1/2 are compressed.
    const auto strong = parse_policy("k-vec:window=1,pooling=none,beta=0,cross_head=off,lambda=3");
    CHECK(select_all(strong.create(), cache, 3)[0].scores[0] == Approx(1 - 0.25 / (0.25 + 3 * 0.25)));
}

TEST_CASE("k-vec: the least focused heads use the extended window", "[k-vec]") {
    // Attention of the last two queries: head 0 is focused, head 1 is flat with all its mass on the prefix, and head 2
    // is focused with little mass there. The two earlier queries attend to tokens 4 and 5.
    const std::vector<double> early{0, 0, 0, 0, 0.6, 0.4, 0, 0, 0, 0};
    const std::vector<HeadWeights> heads{{{0.7, 0.2, 0.1, 0, 0, 0, 0, 0, 0, 0}, early},
                                         {{0.3, 0.3, 0.2, 0.2, 0, 0, 0, 0, 0, 0}, early},
                                         {{0.015, 0.005, 0, 0, 0, 0, 0, 0.98, 0, 0}, early}};
    Cache cache = hand_cache({hand_layer(heads, 2)});
    const auto kept = [&](const std::string& more) {
        return kept_by(("k-vec:window=2,extended_window=4,pooling=none,cross_layer=off" + more).c_str(), cache, 4)[0];
    };
    const Rows narrow{{0, 1, 8, 9}, {0, 1, 8, 9}, {0, 7, 8, 9}};
    CHECK(kept(",cross_head=off") == narrow);
    // Head 1 has the lowest standard deviation (0.13 over eight tokens, against 0.23 and 0.32) and the highest entropy.
    const Rows first{{0, 1, 8, 9}, {4, 5, 8, 9}, {0, 7, 8, 9}};
    CHECK(kept(",delta=1") == first);
    CHECK(kept(",delta=1,criterion=entropy") == first);
    // With two heads, the extended window is also used by head 0, which has less deviation and more entropy than head
    // 2. The limit is all but one.
    const Rows second{{0, 4, 8, 9}, {4, 5, 8, 9}, {0, 7, 8, 9}};
    CHECK(kept(",delta=2") == second);
    CHECK(kept("") == second);
    CHECK(kept(",delta=99,criterion=entropy") == second);
}

TEST_CASE("k-vec: standard deviation and entropy select different heads", "[k-vec]") {
    // Head 0 has most mass on the window and the rest on one token. Head 1 has all mass on the prefix, spread out.
    const std::vector<double> early{0, 0, 0, 0, 0.6, 0.4, 0, 0};
    const std::vector<HeadWeights> heads{{{0.02, 0, 0, 0, 0, 0, 0, 0.98}, early},
                                         {{0.3, 0.3, 0.2, 0.2, 0, 0, 0, 0}, early}};
    Cache cache = hand_cache({hand_layer(heads, 1)});
    const std::string base = "k-vec:window=1,extended_window=4,pooling=none,cross_layer=off";
    CHECK(kept_by(base.c_str(), cache, 2)[0] == Rows{{4, 7}, {0, 7}});
    CHECK(kept_by((base + ",criterion=entropy").c_str(), cache, 2)[0] == Rows{{0, 7}, {4, 7}});
}

TEST_CASE("k-vec: only the cross-layer module makes layers depend on each other", "[k-vec]") {
    CHECK(parse_policy("k-vec").create().as<DecidesInOrder>());
    CHECK_FALSE(parse_policy("k-vec:cross_layer=off").create().as<DecidesInOrder>());
    CHECK(parse_policy("k-vec").create()->needs().window_queries == 32);
    CHECK(parse_policy("k-vec:cross_head=off").create()->needs().window_queries == 16);
    CHECK(parse_policy("k-vec:window=40").create()->needs().window_queries == 40);
}
