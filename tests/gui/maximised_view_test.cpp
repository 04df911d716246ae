#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

std::vector<std::string> open_views(DrivenApp& driven) {
    std::vector<std::string> ids;
    for (const auto& open : driven.app().views()) ids.push_back(open->id());
    return ids;
}

void double_click_tab(DrivenApp& driven, const char* title) {
    driven.drive([&](ImGuiTestContext& c) {
        const ImGuiWindow* window = ImGui::FindWindowByName(title);
        REQUIRE(window);
        c.MouseTeleportToPos(window->DC.DockTabItemRect.GetCenter());
        c.Yield(2);
        c.MouseDoubleClick(ImGuiMouseButton_Left);
        c.Yield(4);
    });
    driven.settle();
}

/// Views that are in front in their places.
std::vector<std::string> in_front(DrivenApp& driven) {
    std::vector<std::string> ids;
    for (const auto& open : driven.app().views())
        if (ImGui::FindWindowByName(open->title().c_str())->DockTabIsVisible) ids.push_back(open->id());
    return ids;
}

/// Tabs in the same place as a view, from left to right.
std::vector<std::string> tabs_beside(const char* title) {
    std::vector<std::string> names;
    const ImGuiDockNode* node = ImGui::FindWindowByName(title)->DockNode;
    REQUIRE(node);
    REQUIRE(node->TabBar);
    for (const ImGuiTabItem& tab : node->TabBar->Tabs) names.emplace_back(tab.Window ? tab.Window->Name : "");
    return names;
}

/// Writes a trace with only a model's spectra, or with a table of results as well. @param table its name, or ""
std::filesystem::path write_without_prompts(const std::filesystem::path& path, const std::string& table) {
    trace::Writer writer(path, trace::sample::recipe, {.force = true, .generator = "maximised_view_test"});
    writer.write_model(trace::sample::model({}));
    if (!table.empty()) writer.write_results(table, 0, trace::sample::results());
    writer.finish();
    return path;
}

/// Returns the id of the view that a trace of write_without_prompts() opens.
std::string view_of(const std::string& table) {
    return table.empty() ? "spectrum-1" : table == trace::schema::root::prompt_results ? "report-1" : "task_scores-1";
}

/// Dear ImGui Test Engine returns the focus to the earlier view after steps, unless this is called with `true`.
void keep_focus_after_steps(DrivenApp& driven, bool keep) {
    driven.drive([&](ImGuiTestContext& c) { c.EngineIO->ConfigRestoreFocusAfterTests = !keep; });
}

ImVec2 size_of(const char* title) { return ImGui::FindWindowByName(title)->Size; }

}  // namespace

TEST_CASE("a double click on a tab maximizes its view, and a second one restores all views") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto before = open_views(driven);
    const auto front = in_front(driven);
    const ImVec2 size = size_of("Retention###retention-1");
    const float runs_width = size_of("Runs###runs-1").x;
    double_click_tab(driven, "Retention###retention-1");
    CHECK(open_views(driven) == std::vector<std::string>{"retention-1"});
    CHECK(size_of("Retention###retention-1").x == ImGui::GetMainViewport()->WorkSize.x);
    // All views are saved meanwhile, so that the next session has them.
    nlohmann::json state = driven.app().layout_state();
    CHECK(state["views"].size() == before.size());
    double_click_tab(driven, "Retention###retention-1");
    CHECK(open_views(driven) == before);
    CHECK(in_front(driven) == front);
    CHECK(size_of("Retention###retention-1").x == size.x);
    CHECK(size_of("Retention###retention-1").y == size.y);
    CHECK(size_of("Runs###runs-1").x == runs_width);
}

TEST_CASE("tabs keep their order after one was maximized") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const char* title = GENERATE("Cost###cost-1", "Head divergence###head_divergence-1", "Log###log-1");
    const auto before = tabs_beside(title);
    CHECK(before.size() > 3);
    double_click_tab(driven, title);
    CHECK(open_views(driven).size() == 1);
    double_click_tab(driven, title);
    driven.settle();
    driven.settle();
    CHECK(tabs_beside(title) == before);
    CHECK(ImGui::FindWindowByName(title)->DockTabIsVisible);
}

TEST_CASE("a maximized view that is closed stays closed, and the other views return") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    auto before = open_views(driven);
    driven.start_by_palette("maximize the view");  // the view that has the keyboard
    driven.settle();
    CHECK(open_views(driven) == std::vector<std::string>{"retention-1"});
    driven.start_by_palette("maximize the view");
    driven.settle();
    CHECK(open_views(driven) == before);
    double_click_tab(driven, "Inspector###inspector-1");
    CHECK(open_views(driven) == std::vector<std::string>{"inspector-1"});
    driven.app().views().front()->open = false;
    driven.settle();
    before.erase(std::find(before.begin(), before.end(), "inspector-1"));
    CHECK(open_views(driven) == before);
    // Undo and a layout restore the views, too.
    double_click_tab(driven, "Retention###retention-1");
    driven.start_by_palette("compare");
    driven.settle();
    CHECK(open_views(driven).size() > 3);
    double_click_tab(driven, "Retention###retention-1");
    CHECK(open_views(driven).size() == 1);
    driven.start_by_palette("undo");
    driven.settle();
    CHECK(open_views(driven).size() > 3);
}

TEST_CASE("a view that is opened while another view is maximized comes to the front after all views are restored") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto before = open_views(driven);
    double_click_tab(driven, "Retention###retention-1");
    REQUIRE(open_views(driven) == std::vector<std::string>{"retention-1"});
    keep_focus_after_steps(driven, true);
    std::string wanted;
    SECTION("by a key") {
        wanted = "difference-1";
        driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_D); });
    }
    SECTION("by a menu") {
        wanted = "difference-1";
        driven.drive([](ImGuiTestContext& c) { c.MenuClick("//##MainMenuBar/View/Difference A − B"); });
    }
    SECTION("by the palette") {
        wanted = "cost-1";
        driven.start_by_palette("show cost");
    }
    SECTION("by the palette, which also chooses a ranking") {
        wanted = "rankings-1";
        driven.start_by_palette("rank: steps that diverge");
    }
    SECTION("by the palette, as a further view") {
        wanted = "cost-2";
        driven.start_by_palette("new view: cost");
    }
    SECTION("by the picker of views") {
        wanted = "spectrum-1";
        driven.drive([](ImGuiTestContext& c) {
            c.KeyPress(ImGuiKey_V);
            c.Yield(2);
            c.KeyCharsReplace("eigen");  // occurs only in its description
            c.Yield(2);
            c.KeyPress(ImGuiKey_Enter);
        });
    }
    SECTION("by the maximized view") {
        wanted = "retention-2";
        driven.drive([](ImGuiTestContext& c) {
            c.MouseMoveToPos(c.GetWindowByRef("//retention-1")->Rect().GetCenter());
            c.MouseClick(ImGuiMouseButton_Right);
            c.Yield(2);
            c.ItemClick("//$FOCUSED/Open as new view");
        });
    }
    CHECK(driven.draw_until([&] { return driven.app().focused_view()->id() == wanted; }, 60));
    CHECK_FALSE(driven.draw_until([&] { return driven.app().focused_view()->id() != wanted; }, 30));
    const auto front = in_front(driven);
    CHECK(std::find(front.begin(), front.end(), wanted) != front.end());
    for (const std::string& view : before) {
        CAPTURE(view);
        const auto after = open_views(driven);
        CHECK(std::find(after.begin(), after.end(), view) != after.end());
    }
    if (wanted == "rankings-1") CHECK_THAT(driven.shown_text(), Catch::Contains("Steps that diverge most"));
    driven.start_by_palette("undo");
    CHECK(driven.draw_until([&] { return open_views(driven) == before; }, 60));
    keep_focus_after_steps(driven, false);
}

TEST_CASE("prompts that are dropped on a maximized view appear in the form") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    if (!find_view_kind("run")) KVSCOPE_SKIP("this build has no engine");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    double_click_tab(driven, "Retention###retention-1");
    std::ofstream(sample.folder / "dropped.txt") << "a text that was dropped";
    driven.app().open_files({sample.folder / "dropped.txt"});
    driven.drive([](ImGuiTestContext& c) { c.Yield(30); });
    REQUIRE(driven.app().focused_view());
    CHECK(driven.app().focused_view()->id() == "run-1");
    CHECK_THAT(driven.shown_text(), Catch::Contains("a text that was dropped"));
    CHECK(driven.app().n_errors() == 0);
}

TEST_CASE("a trace without prompts shows one view alone until a trace with prompts is opened") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const std::string table = GENERATE("", "niah", "prompts");
    const std::string view = view_of(table);
    DrivenApp driven(explore(write_without_prompts(sample.folder / "alone.h5", table)));
    driven.settle();
    CHECK(open_views(driven) == std::vector<std::string>{view});
    driven.app().open_trace(sample.path);
    driven.settle();
    const auto views = open_views(driven);
    CHECK(views.size() > 10);
    CHECK(std::find(views.begin(), views.end(), view) != views.end());
    CHECK(size_of("Retention###retention-1").x < ImGui::GetMainViewport()->WorkSize.x);
}

TEST_CASE("a trace without prompts opened beside one with prompts maximizes no view") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const std::string table = GENERATE("", "niah", "prompts");
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto before = open_views(driven);
    driven.app().open_trace(write_without_prompts(sample.folder / "beside.h5", table));
    driven.settle();
    CHECK(open_views(driven).size() >= before.size());
    const auto front = in_front(driven);
    CHECK(std::find(front.begin(), front.end(), view_of(table)) != front.end());
    CHECK(std::find(front.begin(), front.end(), "runs-1") != front.end());
}

TEST_CASE("a trace without prompts is shown in the view requested by name") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options = explore(write_without_prompts(sample.folder / "alone.h5", GENERATE("", "niah")));
    options.view = "cost";
    DrivenApp driven(options);
    driven.settle();
    CHECK(open_views(driven) == std::vector<std::string>{"cost-1"});
}

}  // namespace kvscope::gui::testing
