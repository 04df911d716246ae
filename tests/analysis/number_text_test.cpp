#include "analysis/tables/number_text.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace kvscope::analysis {

TEST_CASE("numbers have three significant digits, or as many as distinguish different numbers") {
    CHECK(format_number(0.003149) == "0.00315");
    CHECK(format_number(0.5) == "0.500");
    CHECK(format_number(123) == "123");
    CHECK(format_number(99.96) == "100");
    CHECK(format_number(-12) == "-12.0");
    CHECK(format_number(12.5, 5) == "12.500");
    CHECK(format_number(0) == "0");
    CHECK(format_number(12345.6) == "12,346");
    CHECK(format_number(0.0000123456) == "1.23e-05");
    CHECK(format_number(NAN) == "–");
    CHECK(count_distinguishing_digits(0.1, 0.2) == 3);
    CHECK(count_distinguishing_digits(0.1, 0.1) == 3);
    CHECK(count_distinguishing_digits(0.100001, 0.100002) == 6);
    CHECK(format_number(0.100001, 6) != format_number(0.100002, 6));
}

TEST_CASE("a small share is not shown as zero, and a share below one is not shown as 100 %") {
    CHECK(format_share(0.1234) == "12.3 %");
    CHECK(format_share(0) == "0.0 %");
    CHECK(format_share(1) == "100.0 %");
    CHECK(format_share(0.99999) == "99.9 %");
    CHECK(format_share(0.0000312) == "0.0031 %");
    CHECK(format_share(2.5) == "250.0 %");
    CHECK(format_share(NAN) == "–");
    CHECK(format_change(0.5) == "+50.0 %");
    CHECK(format_change(-0.0000312) == "−0.0031 %");
}

}  // namespace kvscope::analysis
