#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui_internal.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "app/gui/layout/layouts.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

const ImGuiWindow* window_titled(App& app, const std::string& kind) {
    for (const auto& view : app.views()) {
        if (view->kind->name == kind) return ImGui::FindWindowByName(view->title().c_str());
    }
    return nullptr;
}

bool is_in_front(App& app, const std::string& kind) {
    const ImGuiWindow* window = window_titled(app, kind);
    return window && window->DockTabIsVisible;
}

}  // namespace

TEST_CASE("undo restores a closed view unchanged, and the front tabs stay in front") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto is_open = [&] { return window_titled(driven.app(), "difference") != nullptr; };
    REQUIRE(is_open());
    for (const auto& view : driven.app().views()) {
        if (view->kind->name == "prompt") view->view->load({{"by_heads", true}});
    }
    driven.drive([&](ImGuiTestContext& c) { c.WindowClose(DrivenApp::window_of("Difference###difference").c_str()); });
    driven.settle();
    CHECK_FALSE(is_open());
    driven.drive([&](ImGuiTestContext& c) {
        c.WindowFocus(DrivenApp::window_of("Retention###retention").c_str());
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    });
    driven.settle();
    CHECK(is_open());
    CHECK(is_in_front(driven.app(), "retention"));
    CHECK_FALSE(is_in_front(driven.app(), "difference"));
    const nlohmann::json state = driven.app().layout_state();
    for (const auto& view : state["views"]) {
        if (view["kind"] == "prompt") CHECK(view["state"]["by_heads"] == true);
    }
}

TEST_CASE("a change of layout keeps the text typed into a view") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    setenv("XDG_CONFIG_HOME", sample.folder.path().c_str(), 1);
    std::vector<std::pair<const char*, std::vector<const char*>>> fields = {
#ifdef KVSCOPE_WITH_ENGINE
        {"run", {"##budgets", "##output", "##question"}},
#endif
        {"log", {"##log filter"}},
        {"prompt", {"##prompt search", "##prompt mark"}}};
    const auto in_each = [&](DrivenApp& driven, const auto& act) {
        for (const auto& [kind, names] : fields) {
            driven.app().show_view(*find_view_kind(kind));
            driven.settle();
            driven.drive([&, kind = kind, names = names](ImGuiTestContext& c) {
                for (const char* name : names) {
                    // A wide form has the text and the questions in a separate column.
                    const auto text = c.WindowInfo("//run-1/text", ImGuiTestOpFlags_NoError);
                    const bool is_of_text = name == std::string("##question") && text.Window && text.Window->Active;
                    c.SetRef(kind != std::string("run") ? c.WindowInfo(DrivenApp::window_of(kind).c_str()).ID
                             : is_of_text               ? text.ID
                                                        : c.WindowInfo("//run-1/form").ID);
                    act(c, fmt::format("**/{}", name));
                }
            });
        }
    };
    const auto check_all = [&](DrivenApp& driven) {
        in_each(driven, [&](ImGuiTestContext& c, const std::string& field) {
            CAPTURE(field);
            // Enter, with which the test leaves a field, adds a line to a question.
            CHECK(std::string(c.ItemReadAsString(field.c_str())).starts_with("w12"));
        });
    };
    AppOptions options = explore(sample);
    {
        DrivenApp driven(options, true);
        in_each(driven, [&](ImGuiTestContext& c, const std::string& field) { c.ItemInputValue(field.c_str(), "w12"); });
        for (const char* layout : {"explore", "compare", "report", "explore"}) {
            driven.app().apply_layout(layout);
            driven.settle();
            CHECK(driven.app().views().size() == find_layout(layout)->views.size());
        }
        check_all(driven);
        driven.app().apply_layout("compare");
        driven.settle();
        CHECK(driven.app().may_close());
    }
    fields.pop_back();  // the search text is not saved
    options.layout = GENERATE("", "report");
    CAPTURE(options.layout);
    {
        DrivenApp driven(options, true);
        if (options.layout.empty()) driven.app().apply_layout("explore");
        driven.settle();
        check_all(driven);
    }
    unsetenv("XDG_CONFIG_HOME");
}

#ifdef KVSCOPE_WITH_ENGINE
TEST_CASE("Run keeps typed text when the view is maximized, closed and reopened") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    const ViewKind& run = *find_view_kind("run");
    driven.app().show_view(run);
    driven.settle();
    const auto type = [&](const char* field, const char* typed) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef("//run-1");
            c.ItemInput(fmt::format("**/{}", field).c_str());
            c.KeyCharsReplace(typed);
        });
    };
    const auto state = [&] {
        driven.settle();
        nlohmann::json now;
        for (const auto& open : driven.app().views())
            if (open->kind == &run) open->view->save(now);
        return now;
    };
    const auto close = [&] {
        driven.drive([](ImGuiTestContext& c) { c.WindowClose(DrivenApp::window_of("Run###run").c_str()); });
        driven.settle();
    };
    type("##context", "a text of mine");
    driven.start_by_palette("maximize the view");
    CHECK(state()["context"] == "a text of mine");
    CHECK(driven.app().views().size() == 1);
    type("##context", "another text");
    type("##budgets", "w17");
    driven.start_by_palette("maximize the view");
    CHECK(state()["context"] == "another text");
    CHECK(driven.app().views().size() > 1);
    close();
    CHECK(state().is_null());
    driven.app().show_view(run);
    CHECK(state()["context"] == "another text");
    CHECK(state()["budgets"] == "w17");
    driven.start_by_palette("maximize the view");
    driven.settle();
    CHECK(driven.app().views().size() == 1);
    close();
    CHECK(state().is_null());
    CHECK(driven.app().views().size() > 1);
    driven.app().apply_layout("compare");  // a layout without the Run view
    driven.settle();
    driven.app().apply_layout("explore");
    CHECK(state()["context"] == "another text");
    CHECK(state()["budgets"] == "w17");
}
#endif

TEST_CASE("a window without views offers to restore them") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    options.view = "retention";
    DrivenApp driven(options);
    const auto kinds = [&] {
        std::vector<std::string> names;
        for (const auto& view : driven.app().views()) names.push_back(view->kind->name);
        return names;
    };
    const std::string retention = DrivenApp::window_of("Retention###retention");
    driven.settle();
    REQUIRE(kinds() == std::vector<std::string>{"retention"});
    driven.drive([&](ImGuiTestContext& c) { c.WindowClose(retention.c_str()); });
    REQUIRE(kinds().empty());
    driven.drive([](ImGuiTestContext& c) {
        c.ItemClick("//No views/A single view");
        c.Yield(2);
        c.SetRef("//$FOCUSED");
        c.ItemClick("**/##Cost");
    });
    CHECK(kinds() == std::vector<std::string>{"cost"});
    driven.drive([](ImGuiTestContext& c) { c.WindowClose(DrivenApp::window_of("Cost###cost").c_str()); });
    driven.drive([](ImGuiTestContext& c) { c.ItemClick("//No views/Last closed view"); });
    CHECK(kinds() == std::vector<std::string>{"cost"});
    driven.drive([](ImGuiTestContext& c) { c.WindowClose(DrivenApp::window_of("Cost###cost").c_str()); });
    driven.drive([](ImGuiTestContext& c) { c.ItemClick("//No views/Default layout"); });
    driven.settle();
    CHECK(is_in_front(driven.app(), "retention"));
    CHECK(kinds().size() > 5);
}

TEST_CASE("Ctrl+R on the start page shows the Run view immediately, with the keyboard") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    if (!find_view_kind("run")) KVSCOPE_SKIP("built without the engine");
    AppOptions options;
    options.layout = "explore";
    DrivenApp driven(options);
    driven.drive([&](ImGuiTestContext& c) { c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_R); });
    driven.settle();
    CHECK(is_in_front(driven.app(), "run"));
    REQUIRE(driven.app().focused_view());
    CHECK(driven.app().focused_view()->kind->name == "run");
}

TEST_CASE("a requested view replaces the start cards, even without a trace") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    AppOptions options;
    options.view = GENERATE(as<std::string>(), "run", "retention");
    if (!find_view_kind(options.view)) KVSCOPE_SKIP("built without the engine");
    DrivenApp driven(options);
    driven.settle();
    CHECK(is_in_front(driven.app(), options.view));
    bool is_drawn = false;
    driven.drive([&](ImGuiTestContext& c) {
        const auto* window = c.WindowInfo(fmt::format("//{}-1", options.view).c_str()).Window;
        is_drawn = window && window->WasActive;
    });
    CHECK(is_drawn);
}

TEST_CASE("the prompt scrolls to a mark unless there is a selection") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample(900);
    AppOptions options;
    options.traces = {sample.path};
    options.view = "prompt";
    const bool selects = GENERATE(false, true);
    std::string last;
    {
        DrivenApp driven(options);
        const auto tokens = driven.session().focus()->reader()->token_text(0);
        last = tokens[890] + tokens[891] + tokens[892] + tokens[893];
    }
    options.mark = last;
    if (selects) options.select = "token=2";
    DrivenApp driven(options);
    driven.settle();
    float scroll = -1;
    driven.drive([&](ImGuiTestContext& c) { scroll = c.WindowInfo("//prompt-1/text").Window->Scroll.y; });
    CHECK((scroll > 0) == !selects);
}

TEST_CASE("the visible text of the prompt stays in view when its columns become wider") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample(4000);  // more than a screen of the widest lines
    AppOptions options;
    options.traces = {sample.path};
    options.view = "prompt";
    options.select = "token=2000";
    DrivenApp driven(options);
    driven.settle();
    const auto share_above = [&] {
        float share = -1;
        driven.drive([&](ImGuiTestContext& c) {
            const ImGuiWindow* text = c.WindowInfo("//prompt-1/text").Window;
            share = text->Scroll.y / std::max(text->ScrollMax.y, 1.0f);
        });
        return share;
    };
    REQUIRE(share_above() == Approx(0.5).margin(0.1));
    const auto runs = driven.session().visible_runs();
    REQUIRE(runs.size() > 1);
    for (size_t i = 1; i < runs.size(); ++i) driven.session().set_visible(runs[i], false);
    driven.settle();
    CHECK(share_above() == Approx(0.5).margin(0.1));
}

TEST_CASE("every view draws a trace whose prompt has no runs yet") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    trace::sample::TemporaryFolder folder;
    const bool has_prompt = GENERATE(true, false);
    {
        trace::Writer writer(folder / "bare.h5", trace::sample::recipe, {.force = true, .generator = "sample"});
        writer.write_model(trace::sample::model());
        if (has_prompt) writer.write_prompt(0, trace::sample::prompt());
        writer.finish();
    }
    AppOptions options;
    options.traces = {folder / "bare.h5"};
    options.layout = "explore";
    options.mark = "a";
    DrivenApp driven(options);
    for (const ViewKind& kind : view_kinds()) {
        CAPTURE(kind.name, has_prompt);
        driven.app().open_view(kind);
        driven.settle();
    }
    driven.drive([&](ImGuiTestContext& c) {
        for (const int key :
             {ImGuiKey_Period, ImGuiKey_RightBracket, ImGuiKey_F, ImGuiKey_D, ImGuiKey_1, ImGuiKey_Space})
            c.KeyPress(key);
    });
    CHECK(driven.app().notices().empty());
}

TEST_CASE("dropped files open side by side, and files that are not traces are reported") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const auto second = sample.folder / "second.h5";
    std::filesystem::copy_file(sample.path, second);
    DrivenApp driven(AppOptions{});
    test_window()->on_drop = [&](const auto& paths) { driven.app().open_files(paths); };
    GLFWwindow* window = glfwGetCurrentContext();
    const GLFWdropfun dropped = glfwSetDropCallback(window, nullptr);
    REQUIRE(dropped);
    glfwSetDropCallback(window, dropped);
    const std::string nowhere = sample.folder / "nowhere.h5";
    std::array paths{sample.path.c_str(), second.c_str(), nowhere.c_str()};
    dropped(window, static_cast<int>(paths.size()), paths.data());
    test_window()->on_drop = nullptr;
    driven.settle();
    CHECK(driven.session().documents().size() == 2);
    REQUIRE(driven.app().notices().size() == 1);
    CHECK(driven.app().notices()[0].find("nowhere.h5") != std::string::npos);
}

TEST_CASE("if large text leaves no space for a place, its views become tabs of a neighbor") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    const auto dock_of = [&](const char* kind) { return window_titled(driven.app(), kind)->DockId; };
    CHECK(dock_of("prompt") != dock_of("retention"));
    driven.app().set_scale(2);
    driven.app().apply_layout("explore");
    driven.settle();
    CHECK(dock_of("prompt") == dock_of("head_divergence"));
    CHECK(is_in_front(driven.app(), "retention"));
    CHECK(is_in_front(driven.app(), "prompt"));
    CHECK(driven.app().views().size() == find_layout("explore")->views.size());
}

TEST_CASE("every view of a layout has a place at any text size") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    const float scale = GENERATE(1.0f, 1.5f, 1.9f, 2.5f, 4.0f);
    CAPTURE(scale);
    driven.app().set_scale(scale);
    for (const char* layout : {"explore", "compare"}) {
        driven.app().apply_layout(layout);
        driven.settle();
        for (const auto& open : driven.app().views()) {
            CAPTURE(open->title());
            const ImGuiWindow* window = ImGui::FindWindowByName(open->title().c_str());
            REQUIRE(window);
            CHECK(window->DockNode);
        }
    }
    driven.app().set_scale(1);
    driven.settle();
}

TEST_CASE("the overview is below its maps and has their width") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options = explore(sample);
    for (const char* view : {"retention", "difference"}) {
        CAPTURE(view);
        options.view = view;
        DrivenApp driven(options);
        driven.settle();
        driven.drive([&](ImGuiTestContext& c) {
            const std::string window = DrivenApp::window_of(view);
            const bool is_retention = view == std::string("retention");
            const RunKey run = driven.session().visible_runs().front();
            if (is_retention)
                c.SetRef(c.WindowInfo((window + "/maps").c_str()).ID);
            else
                c.SetRef(window.c_str());
            const std::string path = run.text() + "/##map";
            const ImRect map = c.ItemInfo(is_retention ? path.c_str() : "##difference map").RectFull;
            const ImRect strip =
                c.ItemInfo((window + (is_retention ? "/overview" : "/##difference overview")).c_str()).RectFull;
            CHECK(strip.Min.x == Approx(map.Min.x).margin(1));
            CHECK(strip.Max.x == Approx(map.Max.x).margin(1));
            CHECK(strip.Min.y > map.Max.y);
        });
    }
}

TEST_CASE("a run selected in another view has its map scrolled into view") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "retention"));
    driven.app().set_scale(4);  // one or two maps are visible
    driven.settle();
    Session& session = driven.session();
    const auto scroll = [&] {
        float at = 0;
        driven.drive([&](ImGuiTestContext& c) { at = c.WindowInfo("//retention-1/maps").Window->Scroll.y; });
        return at;
    };
    session.selection.select_run(session.visible_runs().back());
    driven.settle();
    const float below = scroll();
    CHECK(below > 0);
    session.selection.select_run(session.visible_runs().front());
    driven.settle();
    CHECK(scroll() < below);
}

TEST_CASE("a run that is selected from the start is in view") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options = explore(sample);
    options.view = "retention";
    {
        DrivenApp driven(options);
        options.select = "run=" + driven.session().look(driven.session().visible_runs().back()).label;
    }
    setenv("XDG_CONFIG_HOME", sample.folder.path().c_str(), 1);
    Settings settings;
    settings.ui_scale = 4;  // one or two maps are visible
    save_settings(settings, settings_file());
    DrivenApp driven(options, true);
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) { CHECK(c.WindowInfo("//retention-1/maps").Window->Scroll.y > 0); });
    unsetenv("XDG_CONFIG_HOME");
}

TEST_CASE("answers side by side need no horizontal scrolling") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "answers"));
    driven.app().set_scale(2);
    driven.settle();
    const auto& windows = ImGui::GetCurrentContext()->Windows;
    const auto* const outputs = std::find_if(windows.begin(), windows.end(), [](const ImGuiWindow* window) {
        return window->WasActive && std::string_view(window->Name).find("/outputs_") != std::string_view::npos;
    });
    REQUIRE(outputs != windows.end());
    CHECK((*outputs)->ScrollMax.x == 0);
    CHECK((*outputs)->ContentSize.x <= (*outputs)->InnerRect.GetWidth());
}

TEST_CASE("a place has no button that closes all its views") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    for (const auto& open : driven.app().views()) {
        const ImGuiWindow* window = ImGui::FindWindowByName(open->title().c_str());
        REQUIRE((window && window->DockNode));
        CHECK((window->DockNode->MergedFlags & ImGuiDockNodeFlags_NoCloseButton) != 0);
    }
}

TEST_CASE("a part of the prompt can be selected and moved in the overview, and reset by a double click") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "retention"));
    driven.settle();
    TokenAxis& axis = driven.session().token_axis;
    const auto n_tokens = static_cast<double>(driven.session().focus()->reader()->prompt(0).visible_tokens());
    REQUIRE(axis.max <= axis.min);
    const auto drag = [&](ImGuiTestContext& c, double from, double to) {
        const ImRect strip = c.ItemInfo("//retention-1/overview").RectFull;
        const auto at = [&](double token) {
            return ImVec2{strip.Min.x + static_cast<float>(token / n_tokens) * strip.GetWidth(), strip.GetCenter().y};
        };
        c.MouseMoveToPos(at(from));
        c.MouseDown();
        c.MouseMoveToPos(at(to));
        c.MouseUp();
        c.Yield(2);
    };
    TokenAxis brushed;
    driven.drive([&](ImGuiTestContext& c) {
        drag(c, 0.2 * n_tokens, 0.6 * n_tokens);
        brushed = axis;
        drag(c, 0.4 * n_tokens, 0.5 * n_tokens);
    });
    CHECK(brushed.min == Approx(0.2 * n_tokens).margin(0.02 * n_tokens));
    CHECK(brushed.max == Approx(0.6 * n_tokens).margin(0.02 * n_tokens));
    CHECK(axis.min == Approx(0.3 * n_tokens).margin(0.02 * n_tokens));
    CHECK(axis.max - axis.min == Approx(brushed.max - brushed.min));
    driven.drive([&](ImGuiTestContext& c) {
        c.MouseMove("//retention-1/overview");
        c.MouseDoubleClick();
    });
    CHECK(axis.max <= axis.min);
}

TEST_CASE("parts of a saved layout with the wrong type are ignored") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const char* saved = GENERATE(
        R"({"views": [{"kind": "cost", "number": "x", "in_front": 3, "state": []}, {"kind": "answers", "number": 1e30}]})",
        R"({"views": [{"kind": "cost"}, 7, {"kind": "answers"}], "keyboard": 3})",
        R"({"views": [{"kind": "cost", "number": -5}, {"kind": "answers"}], "windows": 3})");
    CAPTURE(saved);
    DrivenApp driven(explore(sample));
    driven.settle();
    REQUIRE_NOTHROW(driven.app().restore_layout(nlohmann::json::parse(saved)));
    driven.settle();
    REQUIRE(driven.app().views().size() == 2);
    CHECK(driven.app().views()[0]->id() == "cost-1");
    CHECK(driven.app().views()[1]->id() == "answers-1");
}

TEST_CASE("results of the engine and of tasks are received while the window is hidden") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    bool is_told = false;
    driven.app().tasks().once([] { return std::string("done"); }, [&](const std::string&, bool) { is_told = true; });
    driven.app().tasks().wait();
    CHECK_FALSE(is_told);
    const int n = ImGui::GetFrameCount();
    driven.app().unseen_frame();
    CHECK(is_told);
    CHECK(ImGui::GetFrameCount() == n);
}

}  // namespace kvscope::gui::testing
