#include "app/gui/drawing/run_marks.h"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <vector>

#include "analysis/drawing/policy_color.h"
#include "app/gui/drawing/missing_fonts.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/drawing/theme.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

using analysis::Dash;
using analysis::LineStyle;
using analysis::Marker;
using Catch::Matchers::Contains;

constexpr std::array markers = {Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::cross};
constexpr analysis::Rgb blue{86, 180, 233};

/// Share of a rectangle that differs from the background, and how strongly (0 to 255).
double ink_in(const Screenshot& picture, int left, int top, int width, int height) {
    double sum = 0;
    for (int y = top; y < top + height; ++y)
        for (int x = left; x < left + width; ++x) {
            const size_t at =
                (static_cast<size_t>(y) * static_cast<size_t>(picture.width) + static_cast<size_t>(x)) * 3;
            sum += std::abs(static_cast<int>(picture.rgb[at + 2]));  // the background is black, the ink blue
        }
    return sum / (width * height);
}

template <class Draw>
Screenshot drawn(const Draw& draw) {
    return test_window()->capture([&] {
        const Theme theme = apply_theme(Brightness::dark, 1);
        ImDrawList* list = ImGui::GetForegroundDrawList();
        list->AddRectFilled({0, 0}, {400, 200}, IM_COL32_BLACK);
        draw(theme, list);
        return true;
    });
}

}  // namespace

TEST_CASE("a hidden run's marker is hollow, whatever its budget") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const Screenshot chips = drawn([&](const Theme& theme, ImDrawList* list) {
        for (size_t i = 0; i < markers.size(); ++i) {
            LineStyle style{blue, Dash::solid, markers[i]};
            const auto x = static_cast<float>(10 + 40 * i);
            draw_run_marker(theme, style, {x, 10}, 16, list);
            draw_run_marker(theme, style, {x, 60}, 16, list, false);
        }
    });
    for (size_t i = 0; i < markers.size(); ++i) {
        const int x = 10 + 40 * static_cast<int>(i);
        CAPTURE(i);
        CHECK(ink_in(chips, x, 60, 16, 16) > 5);
        CHECK(ink_in(chips, x, 10, 16, 16) > 1.4 * ink_in(chips, x, 60, 16, 16));
    }
}

TEST_CASE("Inspector fills the marker of a run that dropped the token; hollow markers mean hidden runs") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    Session& session = driven.session();
    const RunKey run = session.all_runs().at(1);
    const auto kept = session.at(run).kept();
    uint32_t dropped = 0;
    while (std::find(kept->indices.begin(), kept->indices.end(), dropped) != kept->indices.end()) ++dropped;
    session.selection.select_run(session.all_runs().at(2));
    session.selection.select_token(dropped);
    driven.settle();
    ImRect row;
    driven.drive([&](ImGuiTestContext& c) {
        row = c.ItemInfo(("//inspector-1/**/##" + session.look(run).run).c_str()).RectFull;
        c.MouseTeleportToPos({800, 5});
        c.Yield(2);
    });
    const float side = 0.65f * ImGui::GetFontSize();
    const auto x = static_cast<int>(row.Min.x - 0.5f * ImGui::GetStyle().ItemSpacing.x - side / 2);
    const auto y = static_cast<int>(row.GetCenter().y);
    const Screenshot picture = driven.picture();
    const uint8_t* pixel = &picture.rgb[static_cast<size_t>(y * picture.width + x) * 3];
    const analysis::Rgb color = session.look(run).style.color.on_dark.value();
    CAPTURE(x, y, int{pixel[0]}, int{pixel[1]}, int{pixel[2]});
    CHECK(std::abs(pixel[0] - color.r) + std::abs(pixel[1] - color.g) + std::abs(pixel[2] - color.b) < 60);
}

TEST_CASE("a missing font is reported once, with the package that contains it") {
    CHECK(font_package(0x928) == "fonts-noto-core");  // Devanagari
    CHECK(font_package(0x1f600) == "fonts-noto-color-emoji");
    CHECK(font_package(0x4e2d) == "fonts-noto-cjk");
    CHECK(font_package(0xd55c) == "fonts-noto-cjk");  // Hangul
    CHECK(font_package(0xe000).empty());              // private use
    CHECK(font_package(0x10fffe).empty());
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    take_missing_font_messages();
    for (int i = 0; i < 2; ++i)
        drawn([&](const Theme&, ImDrawList* list) { draw_text(list, {10, 10}, IM_COL32_WHITE, "a \U000F0123 b"); });
    const auto told = take_missing_font_messages();
    REQUIRE(told.size() == 1);
    CHECK_THAT(told.front(), Contains("U+F0123"));
    CHECK(take_missing_font_messages().empty());
}

TEST_CASE("letters of long and short texts have the same positions, in either reading direction") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const std::string some = "漢字 שלום かな é 한글 ";  // from left to right, with a part from right to left
    std::string many = some;
    while (many.size() < 5000) many += some;
    std::vector<float> of_some, of_many;
    drawn([&](const Theme&, ImDrawList*) {
        const auto few = byte_edges(some);
        of_some.assign(few.begin(), few.end());
        const auto all = byte_edges(many);
        of_many.assign(all.begin(), all.end());
    });
    REQUIRE(of_many.size() == many.size() + 1);
    for (size_t at = 0; at < some.size(); ++at) {
        CAPTURE(at);
        CHECK(std::abs(of_many[at] - of_some[at]) < 0.6f);
    }
    const float end = *std::max_element(of_many.begin(), of_many.end());
    CHECK(std::abs(of_many.back() - end) < 0.6f);
    const auto times = static_cast<float>(many.size()) / static_cast<float>(some.size());
    CHECK(std::abs(end / times - of_some.back()) < 0.6f);
}

}  // namespace kvscope::gui::testing
