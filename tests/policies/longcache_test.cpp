// LongCache's chunks, computed by hand.
#include <catch2/catch.hpp>

#include "tests/policies/hand_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

/// One head whose last query attends to twelve tokens as given. Earlier queries attend elsewhere.
Cache one_head() {
    return hand_cache({hand_layer(
        {{{0.3, 0.02, 0.05, 0.03, 0.04, 0.1, 0.06, 0.06, 0.01, 0.2, 0.03, 0.1}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}}},
        1)});
}

Rows kept(const char* parameters, int64_t budget) {
    Cache cache = one_head();
    return kept_by((std::string("longcache:") + parameters).c_str(), cache, budget)[0];
}

}  // namespace

TEST_CASE("longcache: keeps sinks, recent entries and the chunks with the best entries", "[longcache]") {
    // Chunks (1 2 3) (4 5 6) (7 8 9) between one sink and two recent entries; the best are 0.2, 0.1 and 0.05.
    CHECK(kept("sinks=1,recent=2,chunk=3", 6) == Rows{{0, 7, 8, 9, 10, 11}});
    CHECK(kept("sinks=1,recent=2,chunk=3", 9) == Rows{{0, 4, 5, 6, 7, 8, 9, 10, 11}});
    // Of a chunk that does not fit, the best entries are kept.
    CHECK(kept("sinks=1,recent=2,chunk=3", 8) == Rows{{0, 5, 6, 7, 8, 9, 10, 11}});
    CHECK(kept("sinks=1,recent=2,chunk=3", 5) == Rows{{0, 7, 9, 10, 11}});
    // The last chunk is shorter: (1 2 3 4) (5 6 7 8) (9).
    CHECK(kept("sinks=1,recent=2,chunk=4", 8) == Rows{{0, 5, 6, 7, 8, 9, 10, 11}});
    // With sinks = 0, the first token is a candidate, too.
    CHECK(kept("sinks=0,recent=0,chunk=6", 6) == Rows{{0, 1, 2, 3, 4, 5}});
}

TEST_CASE("longcache: by default, half of the budget without sinks is recent", "[longcache]") {
    CHECK(kept("sinks=1,chunk=3", 6) == Rows{{0, 7, 8, 9, 10, 11}});
    CHECK(kept("sinks=2,chunk=3", 5) == Rows{{0, 1, 9, 10, 11}});
    CHECK_THROWS_AS(kept("sinks=4,chunk=3", 4), BudgetError);
    CHECK_THROWS_AS(kept("sinks=2,recent=3", 5), BudgetError);
    CHECK(kept("sinks=2,recent=3,chunk=3", 6) == Rows{{0, 1, 5, 9, 10, 11}});
}
