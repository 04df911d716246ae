#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <string>

#include "common/json.h"
#include "tests/analysis/policy_trace.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/policy_runs.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/window_size.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// A visible window whose name contains both parts.
const ImGuiWindow* window_with(const std::string& part, const std::string& other) {
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
        const std::string name = window->Name;
        const bool has_both = name.find(part) != std::string::npos && name.find(other) != std::string::npos;
        if (window->WasActive && !window->Hidden && has_both) return window;
    }
    return nullptr;
}

/// Applies the initial places of Explore for a window of this size.
void begin_anew(DrivenApp& driven) {
    driven.app().apply_layout("explore");
    driven.settle();
}

}  // namespace

TEST_CASE("Explore initially shows enough lines of the prompt, and the plot of curves completely or not at all") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const auto stored = h2o_and_snapkv();
    DrivenApp driven(explore(stored.path()));
    const auto [width, height, n_lines] =
        GENERATE(table<int, int, float>({{1600, 1000, 10.0f}, {1280, 800, 6.0f}, {1280, 720, 5.0f}}));
    CAPTURE(width, height);
    const WindowSize size(driven, width, height);
    begin_anew(driven);
    const ImGuiWindow* text = window_with("###prompt-1", "/text");
    REQUIRE(text);
    const float em = ImGui::GetStyle().FontSizeBase;
    CHECK(text->InnerRect.GetHeight() >= (1.6f + n_lines * 1.4f) * em);
    const ImGuiWindow* panels = window_with("###what_if-1", "/panels");
    CHECK((panels || height < 800));
    if (!panels) return;
    CHECK(panels->OuterRectClipped.GetHeight() == Approx(panels->Size.y).margin(1));
    CHECK(panels->ScrollMax.y == 0);
}

TEST_CASE("a low window shows parts of both places below the maps") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    begin_anew(driven);
    const auto height_of = [](const char* title) { return ImGui::FindWindowByName(title)->Size.y; };
    const float prompt = height_of("Prompt###prompt-1");
    {
        const WindowSize size(driven, 1280, 560);
        driven.settle();
        const float least = 6 * ImGui::GetStyle().FontSizeBase;
        CHECK(height_of("Prompt###prompt-1") > least);
        CHECK(height_of("Head divergence###head_divergence-1") > least);
        CHECK(height_of("Retention###retention-1") > least);
    }
    driven.settle();
    CHECK(height_of("Prompt###prompt-1") == Approx(prompt).margin(2));
}

TEST_CASE("curves collapse if the plot would be cut off, unless the user has opened or closed them") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const analysis::test::PolicyTrace stored({{"full", analysis::test::PolicyTrace::n_tokens}, {"h2o", 12}});
    DrivenApp driven(explore(stored.path()));
    const WindowSize size(driven, 1280, 600);
    begin_anew(driven);
    CHECK_FALSE(window_with("###what_if-1", "/panels"));
    driven.drive([](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("What-if###what_if").c_str());
        c.ItemClick("Curves");
    });
    driven.settle();
    CHECK(window_with("###what_if-1", "/panels"));
    nlohmann::json state;
    for (const auto& open : driven.app().views())
        if (open->kind->name == "what_if") open->view->save(state);
    CHECK(state["curves"] == true);
}

}  // namespace kvscope::gui::testing
