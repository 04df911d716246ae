#include "analysis/measures/overlap.h"

#include <catch2/catch.hpp>

#include "tests/analysis/kept_example.h"

using namespace kvscope::analysis;

TEST_CASE("Jaccard index of two lists") {
    const std::vector<uint32_t> a{0, 1, 5};
    const std::vector<uint32_t> b{0, 5, 7, 9};
    CHECK(jaccard(a, b) == Approx(2.0 / 5));
    CHECK(jaccard(a, a) == 1);
    CHECK(jaccard(a, {}) == 0);
    CHECK(jaccard({}, {}) == 1);
}

TEST_CASE("overlap of the heads of a layer is a symmetric matrix with ones on the diagonal") {
    const auto sets = test::by_hand();
    const auto overlap = head_overlap(sets.view());
    CHECK(overlap == std::vector<double>{1, 2.0 / 3, 2.0 / 3, 1, 1, 0, 0, 1});
}

TEST_CASE("overlap of two runs counts the entries of each layer") {
    const auto a = test::by_hand();
    const test::OwnedSets b(2, 2, 6, {{0, 1}, {4, 5}, {3}, {2, 5}});
    // Layer 0: both {0,1} and {5}, at least one {0,1,5} and {0,4,5}. Layer 1: both {} and {2,5}, at least one {3} and
    // {2,5}.
    CHECK(run_overlap(a.view(), b.view()) == std::vector<double>{3.0 / 6, 2.0 / 3});
    CHECK(run_overlap_total(a.view(), b.view()) == Approx(5.0 / 9));
    CHECK(run_overlap_total(a.view(), a.view()) == 1);
    // Unique tokens in layer 0: {0,1,5} and {0,1,4,5}; in layer 1: {2,5} and {2,3,5}.
    CHECK(run_token_overlap(a.view(), b.view()) == std::vector<double>{3.0 / 4, 2.0 / 3});
}

TEST_CASE("a KV head is compared with each query head of its group") {
    const test::OwnedSets kv(1, 1, 6, {{0, 1}});
    const test::OwnedSets query(1, 2, 6, {{0, 1}, {1, 2}});
    // Rows: {0,1} with {0,1}: 2 of 2; {0,1} with {1,2}: 1 of 3.
    CHECK(run_overlap(kv.view(), query.view())[0] == Approx(3.0 / 5));
    CHECK(run_overlap(query.view(), kv.view())[0] == Approx(3.0 / 5));
}

TEST_CASE("runs that cannot be compared are rejected") {
    const test::OwnedSets a(1, 2, 6, {{0}, {1}});
    CHECK_THROWS_AS(run_overlap(a.view(), test::OwnedSets(1, 3, 6, {{0}, {1}, {2}}).view()), std::invalid_argument);
    CHECK_THROWS_AS(run_overlap(a.view(), test::OwnedSets(1, 2, 7, {{0}, {1}}).view()), std::invalid_argument);
    CHECK_THROWS_AS(run_token_overlap(a.view(), test::OwnedSets(2, 1, 6, {{0}, {1}}).view()), std::invalid_argument);
}

TEST_CASE("overlap of two runs counts a token in a merged entry of n as 1/n") {
    const test::OwnedSets whole(1, 1, 6, {{0, 1, 2, 3}}), of_merged(1, 1, 6, {{0, 1, 2, 3}});
    const std::vector<uint32_t> entry_tokens{1, 1, 2, 2};
    KeptSets merged = of_merged.view();
    merged.entry_tokens = entry_tokens;
    CHECK(run_overlap_total(whole.view(), merged) == Approx(3.0 / 4));
    CHECK(run_overlap_total(merged, whole.view()) == Approx(3.0 / 4));
    CHECK(run_overlap_total(merged, merged) == 1);
}
