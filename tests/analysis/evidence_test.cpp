#include "analysis/measures/evidence.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/analysis/kept_example.h"

using namespace kvscope::analysis;
using Tokens = std::vector<uint32_t>;

TEST_CASE("evidence by hand: {0, 1, 5} {0, 5} {} {2, 5}") {
    const auto sets = test::by_hand();
    const Tokens evidence{1, 4, 5};
    const EvidenceShares shares = evidence_shares(sets.view(), evidence);
    CHECK(shares.kept == Approx((2.0 / 3 + 1.0 / 3 + 0 + 1.0 / 3) / 4));
    CHECK(shares.gone == Approx(1.0 / 3));
    const Tokens last{5};
    CHECK(evidence_shares(sets.view(), last).kept == 0.75);
    CHECK(evidence_shares(sets.view(), last).gone == 0);
}

TEST_CASE("without evidence, its shares are unknown") {
    const auto sets = test::by_hand();
    CHECK(std::isnan(evidence_shares(sets.view(), {}).kept));
    CHECK(std::isnan(evidence_shares(sets.view(), {}).gone));
}

TEST_CASE("shares of evidence equal the result of a plain loop") {
    const auto sets = test::random_sets(3, 2, 31, GENERATE(6U, 7U));
    const Tokens evidence{0, 3, 4, 5, 17, 30};
    double kept = 0;
    double gone = 0;
    for (const uint32_t token : evidence) {
        int n = 0;
        for (size_t layer = 0; layer < 3; ++layer)
            for (size_t row = 0; row < 2; ++row) n += sets.keeps(layer, row, token) ? 1 : 0;
        kept += n / 6.0;
        gone += n == 0 ? 1 : 0;
    }
    CHECK(evidence_shares(sets.view(), evidence).kept == Approx(kept / 6));
    CHECK(evidence_shares(sets.view(), evidence).gone == Approx(gone / 6));
}

TEST_CASE("dropped tokens of the system prompt by hand: {0, 1, 5} {0, 5} {} {2, 5} of 6 tokens") {
    const auto sets = test::by_hand();
    CHECK(system_dropped(sets.view(), 2) == Approx((1 - 3.0 / 8) - (1 - 4.0 / 16)));
    CHECK(std::isnan(system_dropped(sets.view(), 0)));
    CHECK(std::isnan(system_dropped(sets.view(), 6)));
}
