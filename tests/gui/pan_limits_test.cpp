#include "app/gui/drawing/pan_limits.h"

#include <imgui_internal.h>

#include <catch2/catch.hpp>

#include "app/gui/figure/figure_axes.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

using namespace kvscope;
using namespace kvscope::gui;
using namespace kvscope::gui::testing;
using Range = std::pair<double, double>;

TEST_CASE("a range that is moved beyond its limits keeps its size") {
    CHECK(move_range_within_limits(2, 5, 0, 10) == Range(2, 5));
    CHECK(move_range_within_limits(-2, 1, 0, 10) == Range(0, 3));
    CHECK(move_range_within_limits(8, 11, 0, 10) == Range(7, 10));
    CHECK(move_range_within_limits(-5, 40, 0, 10) == Range(0, 10));
    const auto [from, to] = move_range_within_limits(0.5, 50, 1, 1000, true);
    CHECK(from == 1);
    CHECK(to == Approx(100));
    const auto [low, high] = move_range_within_limits(200, 20000, 1, 1000, true);
    CHECK(low == Approx(10));
    CHECK(high == 1000);
    CHECK(move_range_within_limits(0.1, 5000, 1, 1000, true) == Range(1, 1000));
}

TEST_CASE("a map dragged beyond its end keeps its range, and a wheel step zooms by a quarter") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "retention"));
    driven.settle();
    TokenAxis& axis = driven.session().token_axis;
    const auto n_tokens = static_cast<double>(driven.session().focus()->reader()->prompt(0).visible_tokens());
    TokenAxis notch, begin, end;
    driven.drive([&](ImGuiTestContext& c) {
        const ImRect maps = c.WindowInfo("//retention-1/maps").Window->Rect();
        const ImVec2 middle{maps.GetCenter().x, maps.Min.y + 0.12f * maps.GetHeight()};
        const auto drag = [&](float by) {
            c.MouseMoveToPos(middle);
            c.MouseDown();
            c.MouseMoveToPos({middle.x + by, middle.y});
            c.Yield(2);
            c.MouseUp();
            c.Yield(2);
        };
        c.MouseMoveToPos(middle);
        c.MouseWheelY(1);
        c.Yield(2);
        notch = axis;
        drag(0.45f * maps.GetWidth());
        begin = axis;
        drag(-0.45f * maps.GetWidth());
        end = axis;
    });
    const double width = notch.max - notch.min;
    CHECK(width == Approx(0.8 * n_tokens).epsilon(0.01));
    CHECK(begin.min == Approx(0).margin(1e-9));
    CHECK(begin.max == Approx(width));
    CHECK(end.max == Approx(n_tokens));
    CHECK(end.max - end.min == Approx(width));
}

TEST_CASE("the y title and line labels stay readable in a low plot") {
    CHECK(lower_end_of_y_axis_title(5, 65, 40, 0, 105) == 55);      // centered if there is space
    CHECK(lower_end_of_y_axis_title(5, 65, 100, 0, 105) == 100);    // lower if it would begin above the window
    CHECK(lower_end_of_y_axis_title(45, 105, 100, 0, 110) == 110);  // higher if it would end below the window
    CHECK(lower_end_of_y_axis_title(5, 65, 200, 0, 105) == 200);    // too long: its end is at the upper edge
    PlotFrame frame;
    frame.min = {0, 10};
    frame.max = {100, 70};
    CHECK(top_of_label(frame, 40, 15) == 24);  // above its line
    CHECK(top_of_label(frame, 16, 15) == 17);  // below its line at the panel's end
}
