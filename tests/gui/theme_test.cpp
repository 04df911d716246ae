#include "app/gui/drawing/theme.h"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "tests/analysis/color_distance.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

analysis::test::Triple triple(const ImVec4& color) {
    return {static_cast<double>(color.x), static_cast<double>(color.y), static_cast<double>(color.z)};
}

/// Contrast as defined by WCAG, from 1 to 21.
double contrast(const ImVec4& a, const ImVec4& b) {
    const auto luminance = [](const ImVec4& color) {
        const analysis::test::Triple light = analysis::test::linear(triple(color));
        return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
    };
    const auto [low, high] = std::minmax({luminance(a), luminance(b)});
    return (high + 0.05) / (low + 0.05);
}

}  // namespace

TEST_CASE("warnings, errors, differences and pins are readable on both backgrounds, also for color-blind readers") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const Brightness brightness = GENERATE(Brightness::dark, Brightness::light);
    Theme theme;
    test_window()->draw_frame([&] {
        theme = apply_theme(brightness, 1);
        return true;
    });
    const std::array<std::pair<const char*, ImVec4>, 4> colors = {
        {{"warning", theme.warning}, {"error", theme.error}, {"differs", theme.differs}, {"pin", theme.pin}}};
    for (size_t i = 0; i < colors.size(); ++i) {
        CAPTURE(static_cast<int>(brightness), colors[i].first);
        CHECK(contrast(colors[i].second, theme.panel) >= 4.5);
        for (size_t j = 0; j < i; ++j) {
            CAPTURE(colors[j].first);
            using analysis::test::Eyes;
            for (const Eyes eyes : {Eyes::usual, Eyes::deuteranope, Eyes::protanope}) {
                CAPTURE(static_cast<int>(eyes));
                CHECK(analysis::test::color_distance(triple(colors[i].second), triple(colors[j].second), eyes) >= 12);
            }
        }
    }
}

TEST_CASE("a scroll bar is visible on both backgrounds") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const Brightness brightness = GENERATE(Brightness::dark, Brightness::light);
    Theme theme;
    ImVec4 bar;
    test_window()->draw_frame([&] {
        theme = apply_theme(brightness, 1);
        bar = ImGui::GetStyle().Colors[ImGuiCol_ScrollbarGrab];
        return true;
    });
    const auto over = [&](float front, float back) { return bar.w * front + (1 - bar.w) * back; };
    const ImVec4 seen{over(bar.x, theme.panel.x), over(bar.y, theme.panel.y), over(bar.z, theme.panel.z), 1};
    CHECK(contrast(seen, theme.panel) >= 3);
}

TEST_CASE("a list that continues below its window fades out, except at its end") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "runs"));
    Document& document = *driven.session().documents()[0];
    while (document.reader()->n_runs(0) < 100)
        document.add_run(0, document.reader()->run_record(0, 1), document.id_of(0, 1));
    driven.settle();
    ImRect list;
    driven.drive([&](ImGuiTestContext& c) { list = c.WindowInfo("//runs-1").Window->InnerRect; });
    // Largest brightness, of 255, at this distance above the list's lower edge.
    const auto brightest = [&](int height) {
        const Screenshot picture = driven.picture();
        int most = 0;
        for (auto y = static_cast<int>(list.Max.y) - height; y < static_cast<int>(list.Max.y); ++y)
            for (auto x = static_cast<int>(list.Min.x) + 60; x < static_cast<int>(list.Min.x) + 200; ++x)
                most = std::max<int>(most, picture.rgb[static_cast<size_t>(y * picture.width + x) * 3]);
        return most;
    };
    CHECK(brightest(16) < 0.7 * brightest(200));
    driven.drive([](ImGuiTestContext& c) { c.ScrollToBottom("//runs-1"); });
    driven.settle();
    CHECK(brightest(30) > 130);  // a failed run, drawn in gray
}

}  // namespace kvscope::gui::testing
