// Tests of the token axis that stacked maps share, and of search matches in all of them.
#include <implot.h>
#include <implot_internal.h>

#include <catch2/catch.hpp>

#include "app/gui/view_data/prompt_text.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// Left and right edges of the token maps in the last frame.
std::vector<std::pair<float, float>> edges_of_maps() {
    std::vector<std::pair<float, float>> edges;
    ImPlotContext& plots = *ImPlot::GetCurrentContext();
    for (int i = 0; i < plots.Plots.GetBufSize(); ++i) {
        const ImPlotPlot* plot = plots.Plots.GetByIndex(i);
        // The maps of figures are not on the token axis; their axes begin at −0.5.
        const bool is_map =
            (plot->Axes[ImAxis_Y1].Flags & ImPlotAxisFlags_Invert) != 0 && plot->Axes[ImAxis_X1].Range.Min == 0;
        if (is_map && plot->PlotRect.GetWidth() > 100) edges.emplace_back(plot->PlotRect.Min.x, plot->PlotRect.Max.x);
    }
    return edges;
}

}  // namespace

TEST_CASE("stacked maps share a token axis to the pixel, even if one scrolls or has bars beside it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    options.layout = "compare";
    DrivenApp driven(options);
    driven.settle();
    const auto runs = driven.session().visible_runs();
    REQUIRE(runs.size() >= 3);
    const bool is_pair_alone = GENERATE(false, true);
    driven.session().pair.a = runs[1];
    driven.session().pair.b = runs[2];
    driven.session().pair.alone = is_pair_alone;
    driven.settle();
    ImPlot::BustPlotCache();  // discards maps of other tests
    driven.settle();
    const auto edges = edges_of_maps();
    CAPTURE(is_pair_alone);
    REQUIRE(edges.size() >= 3);
    for (const auto& [left, right] : edges) {
        CHECK(left == edges.front().first);
        CHECK(right == edges.front().second);
    }
}

TEST_CASE("a text searched in Prompt is highlighted in all maps until the field is empty") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto map = [&] {
        ImRect maps;
        driven.drive([&](ImGuiTestContext& c) {
            maps = c.WindowInfo("//retention-1/maps").Window->Rect();
            c.MouseMoveToPos({2, 2});
        });
        const auto at = [](float pixels) { return static_cast<int>(pixels); };
        return crop_screenshot(driven.picture(), at(maps.Min.x), at(maps.Min.y), at(maps.GetWidth()),
                               at(maps.GetHeight()))
            .rgb;
    };
    const auto type = [&](const char* text) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//prompt-1");
            c.ItemInputValue("**/##prompt search", text);
        });
        driven.session().selection.deselect();
        driven.settle();
    };
    driven.session().selection.deselect();
    driven.settle();
    const auto before = map();
    const auto prompt = prompt_text(driven.session(), *driven.session().focus());
    REQUIRE(prompt);
    type(prompt->tokens[2].c_str());
    REQUIRE(searched_spans(driven.session(), *driven.session().focus()));
    CHECK(!searched_spans(driven.session(), *driven.session().focus())->empty());
    CHECK(map() != before);
    type("");
    CHECK(map() == before);
}

}  // namespace kvscope::gui::testing
