#include "common/counted.h"

#include <catch2/catch.hpp>

using kvscope::counted;

TEST_CASE("a noun follows its number") {
    CHECK(counted(1, "entry") == "1 entry");
    CHECK(counted(2, "entry") == "2 entries");
    CHECK(counted(0, "day") == "0 days");
    CHECK(counted(3, "key") == "3 keys");
    CHECK(counted(1, "sample") == "1 sample");
}
