#include "analysis/measures/head_budget.h"

#include <catch2/catch.hpp>

#include "tests/analysis/kept_example.h"

using namespace kvscope::analysis;

TEST_CASE("the budget of a head is the number of its entries") {
    CHECK(head_budgets(test::by_hand().view()) == std::vector<uint32_t>{3, 2, 0, 2});
}
