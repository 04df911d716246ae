#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "app/gui/drawing/view_sketch.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

size_t n_open(DrivenApp& driven, const std::string& kind) {
    const auto& views = driven.app().views();
    return static_cast<size_t>(
        std::count_if(views.begin(), views.end(), [&](const auto& open) { return open->kind->name == kind; }));
}

bool is_in_front(const char* title) {
    const ImGuiWindow* window = ImGui::FindWindowByName(title);
    return window && window->DockTabIsVisible;
}

bool is_any_popup_open() { return ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel); }

void open_and_type(ImGuiTestContext& c, const char* typed) {
    c.KeyPress(ImGuiKey_V);
    c.Yield(2);
    c.KeyCharsReplace(typed);
    c.Yield(2);
}

}  // namespace

TEST_CASE("every kind of view has a sketch of known cells, and all sketches have one size") {
    for (const ViewKind& kind : view_kinds()) {
        CAPTURE(kind.name);
        const auto rows = split_sketch_rows(kind.sketch);
        CHECK(rows.size() == 8);
        for (const auto row : rows) {
            CHECK(row.size() == 16);
            CHECK(row.find_first_not_of(".-#*ab0123456789") == std::string_view::npos);
        }
    }
}

TEST_CASE("a sketch fills its cells in the theme's colors") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    Theme theme;
    theme.accent = {1, 0, 0, 1};
    theme.ink = {0, 1, 0, 1};
    test_window()->draw_frame([&] {
        ImDrawList& list = *ImGui::GetForegroundDrawList();
        const int before = list.VtxBuffer.Size;
        draw_sketch(list, "\n.*\n#?\n*", {10, 20}, {8, 6}, theme);
        REQUIRE(list.VtxBuffer.Size == before + 3 * 4);
        const ImDrawVert* corners = &list.VtxBuffer[before];
        CHECK(corners[0].col == packed(theme.accent));
        CHECK(corners[0].pos.x == 14);
        CHECK(corners[0].pos.y == 20);
        CHECK(corners[4].col == packed(theme.ink));
        CHECK(corners[4].pos.x == 10);
        CHECK(corners[4].pos.y == 22);
        return true;
    });
}

TEST_CASE("the picker shows an open view, and with Shift opens a second one") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    REQUIRE(n_open(driven, "spectrum") == 1);
    REQUIRE_FALSE(is_in_front("Spectrum###spectrum-1"));
    // "eigen" occurs only in its summary.
    driven.drive([&](ImGuiTestContext& c) {
        open_and_type(c, "eigen");
        c.KeyPress(ImGuiKey_Enter);
        c.Yield(4);
    });
    CHECK(n_open(driven, "spectrum") == 1);
    CHECK(is_in_front("Spectrum###spectrum-1"));
    CHECK_FALSE(is_any_popup_open());
    driven.drive([&](ImGuiTestContext& c) {
        open_and_type(c, "eigen");
        c.KeyPress(ImGuiMod_Shift | ImGuiKey_Enter);
        c.Yield(4);
    });
    CHECK(n_open(driven, "spectrum") == 2);
    CHECK(is_in_front("Spectrum 2###spectrum-2"));
    CHECK(driven.app().actions().last() == "New view: Spectrum");
}

TEST_CASE("a click in the picker opens a view, and undo closes it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    REQUIRE(n_open(driven, "scatter") == 0);
    driven.drive([&](ImGuiTestContext& c) {
        c.MenuClick("//##MainMenuBar/View/Open a view…");
        c.Yield(2);
        c.SetRef("//$FOCUSED");
        c.ItemClick("**/##Scatter");
        c.Yield(4);
    });
    driven.settle();
    CHECK(n_open(driven, "scatter") == 1);
    CHECK(is_in_front("Scatter###scatter-1"));
    CHECK_FALSE(is_any_popup_open());
    driven.drive([&](ImGuiTestContext& c) { c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z); });
    driven.settle();
    CHECK(n_open(driven, "scatter") == 0);
}

TEST_CASE("in the picker, arrow keys select, text without a match opens no view, and Escape closes it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    AppOptions options;
    options.layout = "explore";
    DrivenApp driven(options);
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) {
        open_and_type(c, "no such view");
        c.KeyPress(ImGuiKey_Enter);
        c.Yield(2);
        IM_CHECK(is_any_popup_open());
        c.KeyPress(ImGuiKey_Escape);
        c.Yield(2);
        IM_CHECK(!is_any_popup_open());
    });
    CHECK_FALSE(ImGui::FindWindowByName("Start")->Hidden);
    driven.drive([&](ImGuiTestContext& c) {
        open_and_type(c, "column");  // occurs only in the summary of Scatter
        c.KeyPress(ImGuiKey_RightArrow);
        c.KeyPress(ImGuiKey_Enter);
        c.Yield(4);
    });
    CHECK(driven.app().actions().last() == "Show Scatter");
    driven.drive([&](ImGuiTestContext& c) {
        open_and_type(c, "");
        c.KeyPress(ImGuiKey_RightArrow);
        c.KeyPress(ImGuiKey_Enter);
        c.Yield(4);
    });
    // Without a search, the first kind is chosen, followed by the others of its topic by name.
    std::vector<const ViewKind*> first;
    for (const ViewKind& kind : view_kinds())
        if (kind.topic == Topic::runs) first.push_back(&kind);
    CHECK(driven.app().actions().last() == "Show " + first.at(1)->title);
}

}  // namespace kvscope::gui::testing
