#include "analysis/drawing/ticks.h"

#include <catch2/catch.hpp>

using namespace kvscope::analysis;

namespace {

std::string labels(const Axis& axis, size_t max_ticks) {
    std::string out;
    for (const Tick& tick : ticks_for(axis, max_ticks).ticks) out += (out.empty() ? "" : " ") + tick.label;
    return out;
}

Axis axis(double min, double max, bool whole = false) {
    Axis a;
    a.min = min;
    a.max = max;
    a.whole_numbers = whole;
    return a;
}

}  // namespace

TEST_CASE("ticks are at round values, and never more than requested") {
    CHECK(labels(axis(0, 1), 6) == "0.0 0.2 0.4 0.6 0.8 1.0");
    CHECK(labels(axis(0, 19.4), 7) == "0 5 10 15");
    CHECK(labels(axis(-0.5, 2012.5, true), 6) == "0 500 1,000 1,500 2,000");
    CHECK(labels(axis(-1, 1), 5) == "\u22121.0 \u22120.5 0.0 0.5 1.0");
    for (size_t n = 2; n < 15; ++n) {
        for (const double max : {0.003, 0.7, 1.0, 9.99, 10.0, 123.0, 99999.5}) {
            CHECK(ticks_for(axis(0, max), n).ticks.size() <= n);
            CHECK(ticks_for(axis(0, max), n).ticks.size() >= 2);
        }
    }
}

TEST_CASE("counts have ticks only at whole numbers") {
    CHECK(labels(axis(-0.5, 2.5, true), 8) == "0 1 2");
    CHECK(labels(axis(-0.5, 0.5, true), 8) == "0");
    CHECK(labels(axis(-0.5, 8.5, true), 3) == "0 4 8");
    CHECK(labels(axis(-0.5, 29.5, true), 4) == "0 10 20");
}

TEST_CASE("very small and very large values share an exponent") {
    const Ticks small = ticks_for(axis(0, 3.2e-6), 8);
    CHECK(small.exponent == -6);
    CHECK(labels(axis(0, 3.2e-6), 8) == "0.0 0.5 1.0 1.5 2.0 2.5 3.0");
    CHECK(axis_title("JSD", "nats", -6) == "JSD (10\u207b\u2076 nats)");
    CHECK(ticks_for(axis(0, 4e9), 5).exponent == 9);
    CHECK(ticks_for(axis(0, 100000), 5).exponent == 0);
    CHECK(axis_title("Layer", "", 0) == "Layer");
    CHECK(axis_title("Time", "s", 0) == "Time (s)");
    CHECK(axis_title("", "s", 0) == "s");
}

TEST_CASE("logarithmic ticks are powers of ten") {
    Axis a = axis(1, 1e6);
    a.scale = Scale::logarithmic;
    CHECK(labels(a, 8) == "10\u2070 10\u00b9 10\u00b2 10\u00b3 10\u2074 10\u2075 10\u2076");
    a = axis(0.05, 20);
    a.scale = Scale::logarithmic;
    CHECK(labels(a, 8) == "0.1 1 10");
    // Within a decade, an axis that begins at 1 has a tick there.
    for (const double end : {2.0, 4.0, 8.0, 9.9}) {
        CAPTURE(end);
        a = axis(1, end);
        a.scale = Scale::logarithmic;
        CHECK(labels(a, 8).starts_with("1 2"));
        CHECK(labels(a, 2).starts_with("1 "));
    }
    a = axis(0.2, 0.6);
    a.scale = Scale::logarithmic;
    CHECK(labels(a, 8) == "0.2 0.5");
    a = axis(6, 9);
    a.scale = Scale::logarithmic;
    CHECK(labels(a, 8) == "6.0 6.5 7.0 7.5 8.0 8.5 9.0");
}

TEST_CASE("an axis' own ticks are used, and an invalid axis has none") {
    Axis a = axis(0, 1);
    a.ticks = {{0.5, "middle"}};
    CHECK(labels(a, 2) == "middle");
    CHECK(ticks_for(axis(1, 1), 5).ticks.empty());
}
