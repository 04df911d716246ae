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
    CHECK(lost_evidence(sets.view(), evidence) == Tokens{4});
    const Tokens last{5};
    CHECK(evidence_shares(sets.view(), last).kept == 0.75);
    CHECK(evidence_shares(sets.view(), last).gone == 0);
    CHECK(lost_evidence(sets.view(), last).empty());
}

TEST_CASE("without evidence, its shares are unknown") {
    const auto sets = test::by_hand();
    CHECK(std::isnan(evidence_shares(sets.view(), {}).kept));
    CHECK(std::isnan(evidence_shares(sets.view(), {}).gone));
    CHECK(lost_evidence(sets.view(), {}).empty());
}

TEST_CASE("shares of evidence equal the result of a plain loop") {
    const auto sets = test::random_sets(3, 2, 31, GENERATE(6U, 7U));
    const Tokens evidence{0, 3, 4, 5, 17, 30};
    double kept = 0;
    Tokens lost;
    for (const uint32_t token : evidence) {
        int n = 0;
        for (size_t layer = 0; layer < 3; ++layer)
            for (size_t row = 0; row < 2; ++row) n += sets.keeps(layer, row, token) ? 1 : 0;
        kept += n / 6.0;
        if (n == 0) lost.push_back(token);
    }
    CHECK(evidence_shares(sets.view(), evidence).kept == Approx(kept / 6));
    CHECK(evidence_shares(sets.view(), evidence).gone == Approx(static_cast<double>(lost.size()) / 6));
    CHECK(lost_evidence(sets.view(), evidence) == lost);
}
