#include "analysis/drawing/color_map.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace kvscope::analysis;

TEST_CASE("viridis begins dark and ends yellow, and its reversed map is the reverse") {
    CHECK(color_at(ColorMap::viridis, 0) == Rgb{0x44, 0x01, 0x54});
    CHECK(color_at(ColorMap::viridis, 1) == Rgb{0xFD, 0xE7, 0x25});
    const auto forward = color_table(ColorMap::viridis);
    const auto backward = color_table(ColorMap::viridis_reversed);
    REQUIRE(forward.size() == 256);
    REQUIRE(backward.size() == 256);
    for (size_t i = 0; i < 256; ++i) REQUIRE(forward[i] == backward[255 - i]);
}

TEST_CASE("viridis becomes lighter from entry to entry") {
    double before = -1;
    for (const Rgb c : color_table(ColorMap::viridis)) {
        const auto linear = [](uint8_t v) { return std::pow(v / 255.0, 2.2); };
        const double light = 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);
        CHECK(light >= before - 2e-3);
        before = light;
    }
}

TEST_CASE("the diverging map is neutral in the middle, blue below and red above") {
    const Rgb middle = color_at(ColorMap::blue_white_red, 0.5);
    CHECK(middle == Rgb{0xF7, 0xF7, 0xF7});
    CHECK(color_table(ColorMap::blue_white_red).size() % 2 == 1);
    const Rgb low = color_at(ColorMap::blue_white_red, 0.2);
    const Rgb high = color_at(ColorMap::blue_white_red, 0.8);
    CHECK(low.b > low.r);
    CHECK(high.r > high.b);
    CHECK(color_at(ColorMap::blue_white_red, 0.1) == Rgb{0x21, 0x66, 0xAC});  // an anchor of the map
}

TEST_CASE("the map of needles has the field's colors for wrong, half right and right") {
    CHECK(color_at(ColorMap::red_yellow_green, 0) == Rgb{0xF0, 0x49, 0x6E});
    CHECK(color_at(ColorMap::red_yellow_green, 0.5) == Rgb{0xEB, 0xB8, 0x39});
    CHECK(color_at(ColorMap::red_yellow_green, 1) == Rgb{0x0C, 0xD7, 0x9F});
}

TEST_CASE("values outside the map are clamped") {
    CHECK(color_at(ColorMap::viridis, -1) == color_at(ColorMap::viridis, 0));
    CHECK(color_at(ColorMap::viridis, 7) == color_at(ColorMap::viridis, 1));
    CHECK(color_at(ColorMap::viridis, NAN) == color_at(ColorMap::viridis, 0));
}

TEST_CASE("the seven colors of runs are different and not black") {
    const auto colors = okabe_ito();
    REQUIRE(colors.size() == 7);
    for (size_t i = 0; i < 7; ++i) {
        CHECK_FALSE(colors[i] == Rgb{});
        for (size_t j = 0; j < i; ++j) CHECK_FALSE(colors[i] == colors[j]);
    }
}
