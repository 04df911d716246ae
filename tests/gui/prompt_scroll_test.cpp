#include <fmt/format.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>

#include "app/gui/session/renaming.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

void scroll_to_end(DrivenApp& driven) {
    driven.drive([](ImGuiTestContext& c) { c.ScrollToBottom(c.WindowInfo("//prompt-1/text").ID); });
    driven.settle();
}

/// Whether the mouse finds a token in the text.
bool has_text(DrivenApp& driven) {
    bool found = false;
    driven.drive([&](ImGuiTestContext& c) {
        const ImRect text = c.WindowInfo("//prompt-1/text").Window->InnerRect;
        for (float y = text.Min.y + 30; y < text.Max.y && !found; y += 14) {
            c.MouseTeleportToPos({text.Min.x + 30, y});
            c.Yield(2);
            found = driven.session().hover().has_tokens();
        }
    });
    return found;
}

}  // namespace

TEST_CASE("Prompt shows a shorter prompt after a long one was scrolled to its end") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample, long_one(6000);
    DrivenApp driven(alone(long_one, "prompt"));
    driven.settle();
    Session& session = driven.session();
    scroll_to_end(driven);
    const ImGuiWindow* text = nullptr;
    driven.drive([&](ImGuiTestContext& c) { text = c.WindowInfo("//prompt-1/text").Window; });
    REQUIRE(text->Scroll.y > 500);
    const int shorter = session.open(sample.path).id();
    session.selection.select_run(session.document(shorter)->key_of(0, 1));
    driven.settle();
    CHECK(session.focus()->id() == shorter);
    CHECK(has_text(driven));
    CHECK(text->Scroll.y <= text->ScrollMax.y);

    // A run takes the place of the long trace.
    session.close(shorter);
    driven.settle();
    scroll_to_end(driven);
    REQUIRE(text->Scroll.y > 500);
    std::filesystem::rename(sample.path, long_one.path);
    driven.start_by_palette("reload");
    driven.settle();
    CHECK(session.focus()->reader()->prompt(0).n_tokens == 48);
    CHECK(has_text(driven));
}

TEST_CASE("Prompt shows the text of a selected run next to a longer prompt that was scrolled to a token") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample, long_one(6000);
    DrivenApp driven(alone(long_one, "prompt"));
    driven.settle();
    driven.start_by_palette("t4812");
    driven.settle();
    const ImGuiWindow* text = nullptr;
    driven.drive([&](ImGuiTestContext& c) { text = c.WindowInfo("//prompt-1/text").Window; });
    REQUIRE(text->Scroll.y > 500);
    Session& session = driven.session();
    const int shorter = session.open(sample.path).id();
    session.selection.select_run(session.document(shorter)->key_of(0, 1));
    driven.settle();
    CHECK(text->Scroll.y == 0);
    // Then the user can read on in the longer one.
    scroll_to_end(driven);
    CHECK(text->Scroll.y > 500);
}

TEST_CASE("Prompt keeps its position while another view is maximized, and goes to a token that is requested twice") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace long_one(6000);
    DrivenApp driven(explore(long_one));
    driven.settle();
    const auto scroll = [&] {
        float y = -1;
        driven.drive([&](ImGuiTestContext& c) { y = c.WindowInfo("//prompt-1/text").Window->Scroll.y; });
        return y;
    };
    driven.start_by_palette("t4812");
    driven.settle();
    const float at = scroll();
    REQUIRE(at > 500);
    driven.start_by_palette("show retention");
    for (int i = 0; i < 2; ++i) {
        driven.start_by_palette("maximize the view");
        driven.settle();
    }
    for (int i = 0; i < 12; ++i) driven.draw_until([] { return false; }, 1);
    CHECK(scroll() == Approx(at).margin(2));

    driven.drive([](ImGuiTestContext& c) { c.ScrollToTop(c.WindowInfo("//prompt-1/text").ID); });
    REQUIRE(scroll() < 10);
    driven.start_by_palette("t4812");
    driven.settle();
    CHECK(scroll() == Approx(at).margin(60));
}

TEST_CASE("Prompt initially shows its first column, and then the column of a run that is selected") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto text = [&] {
        const ImGuiWindow* window = nullptr;
        driven.drive([&](ImGuiTestContext& c) { window = c.WindowInfo("//prompt-1/text").Window; });
        return window;
    };
    driven.app().set_scale(2);  // makes the columns wider than the view
    driven.settle();
    CHECK(text()->Scroll.x == 0);
    driven.session().selection.select_run(driven.session().visible_runs().back());
    driven.settle();
    REQUIRE(text()->ScrollMax.x > 0);
    CHECK(text()->Scroll.x > 0);
    driven.app().set_scale(1);
    driven.settle();
}

TEST_CASE("the prompt's text follows the mouse over a map, but not over a list") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace long_one(4000);
    DrivenApp driven(explore(long_one));
    driven.start_by_palette("rank sentences");
    driven.settle();
    bool is_lit = false;
    float beside_rows = -1, beside_maps = -1;
    driven.drive([&](ImGuiTestContext& c) {
        const ImGuiWindow* text = c.WindowInfo("//prompt-1/text").Window;
        const ImRect rows = c.WindowInfo(DrivenApp::window_of("rankings").c_str()).Window->InnerRect;
        for (float y = rows.Min.y + 60; y < rows.Max.y; y += 10) {
            c.MouseTeleportToPos({rows.GetCenter().x, y});
            c.Yield(3);
            is_lit = is_lit || driven.session().hover().has_tokens();
        }
        beside_rows = text->Scroll.y;
        const ImRect maps = c.WindowInfo("//retention-1/maps").Window->InnerRect;
        c.MouseTeleportToPos({maps.Max.x - 60, maps.Min.y + 50});
        c.Yield(4);
        beside_maps = text->Scroll.y;
    });
    CHECK(is_lit);
    CHECK(beside_rows == 0);
    CHECK(beside_maps > 0);
}

TEST_CASE("a token's tooltip stays in the window and away from the text, with labels of any length") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const bool is_long = GENERATE(false, true);
    const bool is_alone = GENERATE(false, true);
    DrivenApp driven(is_alone ? alone(sample, "prompt") : explore(sample));
    int number = 0;
    for (const RunKey& key : driven.session().all_runs())
        if (is_long)
            set_run_label(driven.session(), key,
                          fmt::format("SnapKV, window 32, pooled by the maximum of 7, B = {}", ++number), false);
    if (!is_alone) driven.start_by_palette("show prompt");
    driven.settle();
    bool is_seen = false;
    driven.drive([&](ImGuiTestContext& c) {
        const ImRect text = c.WindowInfo("//prompt-1/text").Window->OuterRectClipped;
        for (const ImVec2 at : {ImVec2{text.Min.x + 20, text.Min.y + 40}, ImVec2{text.Min.x + 60, text.Min.y + 60}}) {
            c.MouseTeleportToPos(at);
            c.Yield(6);
            for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
                if (!(window->Flags & ImGuiWindowFlags_Tooltip) || !window->Active || window->Hidden) continue;
                is_seen = true;
                const ImRect lines{text.Min.x, at.y - 40, text.Max.x, at.y + 40};
                CHECK_FALSE(window->Rect().Overlaps(lines));
                const ImGuiViewport* viewport = ImGui::GetMainViewport();
                CHECK(ImRect({0, 0}, viewport->Size).Contains(window->Rect()));
            }
        }
    });
    CHECK(is_seen);
}

TEST_CASE("the tooltip of a token stays low and near, however many runs are shown") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    Document& document = *driven.session().documents()[0];
    while (document.reader()->n_runs(0) < 20)
        document.add_run(0, document.reader()->run_record(0, 1), document.id_of(0, 1));
    driven.start_by_palette("show prompt");
    float height = 0, away = 0;
    driven.drive([&](ImGuiTestContext& c) {
        const ImRect text = c.WindowInfo("//prompt-1/text").Window->OuterRectClipped;
        const ImVec2 at{text.Min.x + 20, text.GetCenter().y};
        c.MouseTeleportToPos(at);
        c.Yield(6);
        const ImGuiWindow* tooltip = c.GetWindowByRef("//##Tooltip_00");
        IM_CHECK(tooltip && tooltip->Active && !tooltip->Hidden);
        height = tooltip->Size.y;
        away = std::max(tooltip->Pos.y - at.y, at.y - tooltip->Rect().Max.y);
    });
    CHECK(height < 13 * ImGui::GetTextLineHeightWithSpacing());
    CHECK(away < 5 * ImGui::GetTextLineHeightWithSpacing());
}

}  // namespace kvscope::gui::testing
