#include "analysis/measures/five_numbers.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <stdexcept>

using kvscope::analysis::five_numbers;

TEST_CASE("five numbers of a box plot") {
    const auto of_four = five_numbers({4, 1, 3, 2});
    CHECK(of_four.min == 1);
    CHECK(of_four.lower_quartile == Approx(1.75));
    CHECK(of_four.median == Approx(2.5));
    CHECK(of_four.upper_quartile == Approx(3.25));
    CHECK(of_four.max == 4);
    CHECK(five_numbers({7}).upper_quartile == 7);
    CHECK_THROWS_AS(five_numbers({}), std::invalid_argument);
    CHECK_THROWS_AS(five_numbers({1, std::nan("")}), std::invalid_argument);
}
