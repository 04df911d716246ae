// LAQ and LAQ++: the draft is SnapKV's, and the decision depends on the queries of the generated tokens.
#include <catch2/catch.hpp>

#include "tests/policies/hand_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

/// The window's two queries attend as in `late`. The lookahead queries (copies of the first three tokens) attend as in
/// `early`.
Cache one_head() {
    return hand_cache({hand_layer(
        {{{0.01, 0.5, 0.02, 0.3, 0.05, 0.02, 0.05, 0.05}, {0.02, 0.01, 0.02, 0.05, 0.5, 0.3, 0.05, 0.05}}}, 2)});
}

std::vector<Rows> drafts(const char* policy, Cache& cache, int64_t budget) {
    const auto one = parse_policy(policy).create();
    one->begin(cache.context(budget));
    std::vector<Rows> rows;
    for (const auto& layer : cache.observations) rows.push_back(one.as<LooksAhead>()->draft(*layer).rows);
    return rows;
}

}  // namespace

TEST_CASE("laq: the draft keeps tokens by the window's attention, the decision by the lookahead's", "[laq]") {
    Cache cache = one_head();
    CHECK(drafts("laq:window=2,pooling=none", cache, 4)[0] == Rows{{1, 3, 6, 7}});
    CHECK(kept_by("laq:window=2,pooling=none", cache, 4)[0] == Rows{{4, 5, 6, 7}});
    CHECK(kept_by("laq:window=2,pooling=none", cache, 5)[0] == Rows{{3, 4, 5, 6, 7}});
    CHECK_THROWS_AS(drafts("laq:window=7", cache, 7), BudgetError);
}

TEST_CASE("laq++: queries of the window and the lookahead have the same weight", "[laq]") {
    Cache cache = one_head();
    CHECK(drafts("laq++:window=2,pooling=none", cache, 4)[0] == Rows{{1, 3, 6, 7}});
    // Two window and three lookahead queries. The lookahead's weights sum to 1.02, 1.03 and 1.05. The window's first
    // query does not see the last token, so its sum is 0.95 instead of 1.
    const double ahead = 1 / 1.02 + 1 / 1.03 + 1 / 1.05, window = 1 / 0.95 + 1;
    const std::vector<double> late{0.01, 0.5, 0.02, 0.3, 0.05, 0.02}, early{0.02, 0.01, 0.02, 0.05, 0.5, 0.3};
    const auto selection = select_all(parse_policy("laq++:window=2,pooling=none").create(), cache, 4)[0];
    for (size_t j = 0; j < late.size(); ++j)
        CHECK(selection.scores[j] == Approx((window * late[j] + ahead * early[j]) / 5).epsilon(1e-5));
    CHECK(selection.rows == Rows{{1, 4, 6, 7}});
}

TEST_CASE("laq: drafts equal SnapKV with the same settings", "[laq]") {
    Cache cache = random_cache({3, 6, 2, 16}, 80, 5);
    for (const std::string settings :
         {"window=8", "window=8,pooling=avg,kernel=3", "window=20,reduce=max", "window=8,granularity=query_head"}) {
        for (const std::string name : {"laq:", "laq++:"}) {
            CAPTURE(name, settings);
            CHECK(drafts((name + settings).c_str(), cache, 30) == kept_by(("snapkv:" + settings).c_str(), cache, 30));
        }
    }
}
