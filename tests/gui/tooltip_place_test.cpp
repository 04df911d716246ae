// Tests of where tooltips with differences between two runs appear.
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <string>

#include "tests/gui/drawn_text.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/window_size.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

const ImGuiWindow* shown_tooltip() {
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
        if (window->Active && !window->Hidden && (window->Flags & ImGuiWindowFlags_Tooltip) != 0) return window;
    return nullptr;
}

}  // namespace

TEST_CASE("in Compare, a tooltip is beside its view") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const std::string shown = GENERATE("retention", "difference", "prompt");
    const float x = GENERATE(0.15f, 0.55f);  // share of the view's width
    const bool is_small = GENERATE(false, true);
    CAPTURE(shown, x, is_small);
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    const WindowSize size(driven, is_small ? 1280 : 1600, is_small ? 720 : 1000);
    Session& session = driven.session();
    session.pair.a = session.documents()[0]->key_of(0, 1);
    session.pair.b = session.documents()[0]->key_of(0, 2);
    driven.app().apply_layout("compare");
    driven.settle();
    driven.app().show_view(*find_view_kind(shown));
    driven.settle();
    std::string name;
    for (const auto& open : driven.app().views())
        if (open->kind->name == shown) name = open->kind->title + "###" + open->id();
    const ImGuiWindow* view = ImGui::FindWindowByName(name.c_str());
    REQUIRE(view);
    int n_tooltips = 0;
    driven.drive([&](ImGuiTestContext& c) {
        for (float y = 0.2f; y < 0.9f; y += 0.1f) {  // some positions are between two maps
            c.MouseMoveToPos({view->Pos.x + x * view->Size.x, view->Pos.y + y * view->Size.y});
            c.Yield(4);  // the second tooltip has the size of the first
            const ImGuiWindow* tooltip = shown_tooltip();
            if (!tooltip) continue;
            ++n_tooltips;
            CAPTURE(y, tooltip->Pos.x, tooltip->Pos.y, tooltip->Size.x, tooltip->Size.y);
            CHECK_FALSE(view->Rect().Overlaps(tooltip->Rect()));
        }
    });
    CHECK(n_tooltips > 0);
}

}  // namespace kvscope::gui::testing
