#include "app/gui/drawing/theme.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "tests/analysis/color_distance.h"
#include "tests/gui/driven_window.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

analysis::test::Triple triple(const ImVec4& color) {
    return {static_cast<double>(color.x), static_cast<double>(color.y), static_cast<double>(color.z)};
}

/// As WCAG has it: 1 to 21.
double contrast(const ImVec4& a, const ImVec4& b) {
    const auto luminance = [](const ImVec4& color) {
        const analysis::test::Triple light = analysis::test::linear(triple(color));
        return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
    };
    const auto [low, high] = std::minmax({luminance(a), luminance(b)});
    return (high + 0.05) / (low + 0.05);
}

}  // namespace

TEST_CASE("warnings, errors, what differs and pins are read on either ground, and told apart by all eyes") {
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

}  // namespace kvscope::gui::testing
