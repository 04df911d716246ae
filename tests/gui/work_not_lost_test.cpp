#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string_view>

#include "app/gui/session/annotations.h"
#include "app/gui/session/saved_what_ifs.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/two_traces.h"
#include "tests/skip.h"

#ifdef KVSCOPE_WITH_ENGINE
#include "tests/gui/session_with_engine.h"
#endif

namespace kvscope::gui::testing {
namespace {

using Catch::Matchers::Contains;

std::vector<std::string> view_ids(DrivenApp& driven) {
    std::vector<std::string> ids;
    for (const auto& open : driven.app().views()) ids.push_back(open->id());
    return ids;
}

bool has_view(DrivenApp& driven, const std::string& id) {
    const auto ids = view_ids(driven);
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

void draw(DrivenApp& driven, int frames) {
    driven.draw_until([] { return false; }, frames);
}

void press_keys(DrivenApp& driven, ImGuiKeyChord key) {
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(key);
        c.Yield(8);
    });
    driven.settle();
}

/// Views that are not docked.
std::vector<std::string> floating(DrivenApp& driven) {
    std::vector<std::string> ids;
    for (const auto& open : driven.app().views())
        if (!ImGui::FindWindowByName(open->title().c_str())->DockIsActive) ids.push_back(open->id());
    return ids;
}

}  // namespace

TEST_CASE("an opened workspace replaces the open traces, and a notice names them") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const std::filesystem::path workspace = sample.folder / "w.kvscope";
    setenv("XDG_STATE_HOME", (sample.folder / "state").c_str(), 1);
    DrivenApp driven(explore(sample));
    driven.app().save_workspace(workspace);
    driven.app().tasks().wait();
    driven.settle();
    driven.app().open_files({workspace});
    driven.app().tasks().wait();
    driven.settle();
    unsetenv("XDG_STATE_HOME");
    REQUIRE(driven.session().documents().size() == 1);
    CHECK(driven.session().documents()[0]->path() != sample.path);
    const auto& told = driven.app().notices();
    const std::string closed = "closed " + sample.path.filename().string();
    CHECK(std::any_of(told.begin(), told.end(), [&](const auto& text) { return text.find(closed) == 0; }));
    CHECK(floating(driven).empty());
}

#ifdef KVSCOPE_WITH_ENGINE

TEST_CASE("opening a workspace keeps the typed prompt, and undo closes the workspace") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const std::filesystem::path workspace = sample.folder / "w.kvscope";
    setenv("XDG_STATE_HOME", (sample.folder / "state").c_str(), 1);
    {
        DrivenApp driven(explore(sample));
        driven.app().save_workspace(workspace);
        driven.app().tasks().wait();
    }
    AppOptions options;
    options.layout = "explore";
    DrivenApp driven(options);
    driven.app().show_view(*find_view_kind("run"));
    draw(driven, 12);
    driven.drive([&](ImGuiTestContext& c) {
        DrivenApp::refer_to_prompt_of_run(c);
        c.ItemClick("##context");
        c.KeyChars("once upon a time");
        c.Yield(2);
        driven.app().open_files({workspace});
        driven.app().tasks().wait();
        c.Yield(12);
    });
    driven.settle();
    unsetenv("XDG_STATE_HOME");
    REQUIRE(driven.session().documents().size() == 1);
    const auto text_of_run = [&] {
        for (const auto& open : driven.app().views()) {
            nlohmann::json saved;
            if (open->kind->name == "run") open->view->save(saved);
            if (!saved.is_null()) return saved.dump();
        }
        return std::string();
    };
    CHECK_THAT(text_of_run(), Contains("once upon a time"));
    const auto ids = view_ids(driven);
    driven.drive([&](ImGuiTestContext& c) {
        c.WindowFocus(DrivenApp::window_of("Retention###retention").c_str());
        c.Yield(8);
    });
    for (int i = 0; i < 4; ++i) press_keys(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(view_ids(driven) == ids);
    CHECK(floating(driven).empty());
    CHECK_THAT(text_of_run(), Contains("once upon a time"));
}

TEST_CASE("undo from a single view restores all views") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    AppOptions options;
    options.layout = "explore";
    DrivenApp driven(options);
    draw(driven, 12);
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_R);
        c.Yield(12);
    });
    press_keys(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    draw(driven, 12);
    CHECK(floating(driven).empty());
}

TEST_CASE("a decoded what-if's answer returns in a workspace and with the trace") {
    SessionWithEngine gui("decoded");
    gui.engine->run(gui.request({"h2o"}, "16,24"));
    gui.until_idle();
    Document& document = *gui.session.documents().front();
    gui.session.selection.select_run(document.key_of(0, 1));
    LiveWhatIf what_if;
    gui.settle(what_if);
    what_if.budget() = 20;
    gui.settle(what_if);
    const RunKey made = what_if.shown(gui.session);
    REQUIRE(made.valid());
    gui.engine->decode({made});
    gui.until_idle();
    const std::string text = gui.session.attributes(made).output_text;
    REQUIRE(!text.empty());
    CHECK(document.annotations_changed);
    save_annotations(document, nlohmann::json());

    Tasks tasks([] {});
    Session again(tasks);
    Document& reopened = again.open(document.path());
    for (int i = 0; i < 3; ++i) {
        restore_what_ifs(again, [](const std::string& notice) { FAIL_CHECK(notice); });
        tasks.wait();
    }
    REQUIRE(reopened.reader()->n_runs(0) == document.reader()->n_runs(0));
    const int last = reopened.reader()->n_runs(0) - 1;
    CHECK(reopened.reader()->run(0, last).output_text == text);
    const auto place = trace::Place::of_run(0, last);
    CHECK(reopened.reader()->read<int32_t>(place, trace::schema::run::output_ids) ==
          document.reader()->read<int32_t>(place, trace::schema::run::output_ids));
    CHECK(reopened.reader()->read<float>(place, trace::schema::run::step_kl) ==
          document.reader()->read<float>(place, trace::schema::run::step_kl));
}

#endif

TEST_CASE("undo after a trace was closed reopens it and reverts no earlier action") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    AppOptions options = explore(files.first);
    options.traces.push_back(files.second);
    DrivenApp driven(options);
    driven.settle();
    Session& session = driven.session();
    press_keys(driven, ImGuiKey_Period);
    REQUIRE(session.cursor().has_tokens());
    const int id = session.focus()->id();
    const std::filesystem::path path = session.focus()->path();
    press_keys(driven, ImGuiMod_Ctrl | ImGuiKey_W);
    REQUIRE(session.documents().size() == 1);
    press_keys(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    REQUIRE(session.documents().size() == 2);
    CHECK_THAT(driven.app().notices().back(), Contains("closing of a trace"));
    CHECK(session.document(id)->path() == path);
    CHECK(session.cursor().run.document == id);
    CHECK(session.cursor().has_tokens());
    press_keys(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK_FALSE(session.cursor().has_tokens());
}

TEST_CASE("a view opened in a layout returns with the layout") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    driven.start_by_palette("Show Rankings");
    REQUIRE(has_view(driven, "rankings-1"));
    driven.start_by_palette("Layout Report");
    draw(driven, 12);
    CHECK(view_ids(driven) == std::vector<std::string>{"report-1"});
    driven.start_by_palette("Layout Explore");
    draw(driven, 12);
    CHECK(has_view(driven, "rankings-1"));
    CHECK(floating(driven).empty());
}

TEST_CASE("the palette closes the view that has the keyboard, and undo restores it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto all = view_ids(driven);
    const std::string focused = driven.app().focused_view()->id();
    driven.start_by_palette("Close view");
    draw(driven, 8);
    CHECK_FALSE(has_view(driven, focused));
    CHECK(view_ids(driven).size() == all.size() - 1);
    press_keys(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    draw(driven, 8);
    CHECK(view_ids(driven).size() == all.size());
}

TEST_CASE("the palette closes all views but the one that has the keyboard") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    // A single script, because the keyboard returns to the previous window when a script ends.
    driven.drive([](ImGuiTestContext& c) {
        c.MouseMoveToPos(ImGui::FindWindowByName("Prompt###prompt-1")->Rect().GetCenter());
        c.MouseClick();
        c.Yield(2);
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        c.KeyCharsReplaceEnter("Close other views");
        c.Yield(3);
    });
    draw(driven, 8);
    CHECK(view_ids(driven) == std::vector<std::string>{"prompt-1"});
}

TEST_CASE("A is to the left of B if only these are shown") {
    const TwoTraces files;
    Tasks tasks([] {});
    Session session(tasks);
    Document& document = session.open(files.first);
    session.pair.a = document.key_of(0, 3);
    session.pair.b = document.key_of(0, 1);
    session.pair.alone = true;
    REQUIRE(session.visible_runs().size() == 2);
    CHECK(session.visible_runs()[0] == session.pair.a);
    CHECK(session.visible_runs()[1] == session.pair.b);
}

TEST_CASE("the column of a run that is shown comes into view") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "prompt"));
    driven.app().set_scale(3);
    draw(driven, 8);
    Session& session = driven.session();
    const RunKey last = session.visible_runs().back();
    session.set_visible(last, false);
    draw(driven, 8);
    const ImGuiWindow* text = nullptr;
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
        if (window->WasActive && std::string_view(window->Name).find("/text_") != std::string_view::npos) text = window;
    REQUIRE(text);
    REQUIRE(text->Scroll.x == 0);
    session.set_visible(last, true);
    draw(driven, 8);
    CHECK(text->ScrollMax.x > 0);
    CHECK(text->Scroll.x > 0);
    driven.app().set_scale(1);
}

TEST_CASE("an idle window shows no frame rate") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    CHECK_THAT(driven.shown_text(), !Contains(" fps"));
}

}  // namespace kvscope::gui::testing
