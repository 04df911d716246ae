#include <imgui_internal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <iterator>

#include "app/gui/session/annotations.h"
#include "app/gui/session/session_state.h"
#include "app/gui/window/crash_log.h"
#include "app/gui/window/end_signal.h"
#include "app/program/version.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;

void press(DrivenApp& driven, ImGuiKeyChord key) {
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(key);
        c.Yield(8);
    });
}

std::unique_ptr<Session> new_session(Tasks& tasks) { return std::make_unique<Session>(tasks); }

/// Static, so that its name is in no table of exported functions.
[[gnu::noinline]] void crash_here() {
    raise(SIGSEGV);
    asm volatile("");  // prevents a tail call
}

std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a new window has nothing to undo") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const size_t n_views = driven.app().views().size();
    REQUIRE(n_views > 1);
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(driven.app().views().size() == n_views);
    CHECK(driven.session().cursor().run.valid());
}

TEST_CASE("undo reverts changes of marks, pins, runs, A and B in reverse order, and redo repeats them") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    Session& session = driven.session();
    const RunKey second = session.all_runs()[1];
    press(driven, ImGuiKey_2);
    REQUIRE(!session.is_visible(second));
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("Prompt###prompt").c_str());
        c.ItemInputValue("**/##prompt mark", "w12");
        c.Yield(8);
    });
    REQUIRE(session.mark == "w12");
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("Runs###runs").c_str());
        c.ItemClick("**/A");
        c.Yield(8);
    });
    REQUIRE(session.pair.a);
    press(driven, ImGuiKey_Period);
    REQUIRE(session.cursor().has_tokens());
    driven.drive([&](ImGuiTestContext& c) {
        c.WindowFocus(DrivenApp::window_of("Prompt###prompt").c_str());
        c.KeyPress(ImGuiKey_P);
        c.Yield(8);
    });
    const auto pins = session.focus()->pins[0];
    REQUIRE(pins.size() == 1);
    const auto told = [&] { return driven.app().notices().back(); };

    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(told() == "Undone: pins");
    CHECK(session.focus()->pins[0].empty());
    CHECK(session.cursor().has_tokens());
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(!session.cursor().has_tokens());
    CHECK(session.pair.a);
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(!session.pair.a);
    CHECK(told() == "Undone: A and B");
    CHECK(session.mark == "w12");
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(session.mark.empty());
    CHECK(told() == "Undone: mark");
    CHECK(!session.is_visible(second));
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(session.is_visible(second));
    CHECK(told() == "Undone: shown runs");
    for (int i = 0; i < 5; ++i) press(driven, ImGuiMod_Ctrl | ImGuiKey_Y);
    CHECK(!session.is_visible(second));
    CHECK(session.mark == "w12");
    CHECK(session.pair.a);
    CHECK(session.focus()->pins[0] == pins);
    CHECK(told() == "Redone: pins");
}

TEST_CASE("undo first shows the runs that the program hid, and then reverts earlier user actions") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    Session& session = driven.session();
    press(driven, ImGuiKey_Period);
    REQUIRE(session.cursor().has_tokens());
    for (int i = 0; i < 20; ++i) driven.draw_until([] { return false; }, 1);
    const RunKey last = session.all_runs().back();
    session.document(last)->hidden.insert(last);  // as at the end of a job
    for (int i = 0; i < 20; ++i) driven.draw_until([] { return false; }, 1);
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(session.is_visible(last));
    CHECK(driven.app().notices().back() == "Undone: shown runs");
    CHECK(session.cursor().has_tokens());
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK_FALSE(session.cursor().has_tokens());
}

TEST_CASE("undo moves a dragged splitter back") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto width = [] { return ImGui::FindWindowByName("Runs###runs-1")->Size.x; };
    const ImGuiWindow* runs = ImGui::FindWindowByName("Runs###runs-1");
    REQUIRE(runs);
    const float before = width();
    driven.drive([&](ImGuiTestContext& c) {
        c.MouseMoveToPos({runs->Pos.x + runs->Size.x + 1, runs->Pos.y + 40});
        c.MouseDown();
        c.MouseMoveToPos({runs->Pos.x + runs->Size.x + 81, runs->Pos.y + 40});
        c.MouseUp();
        c.Yield(8);
    });
    const float after = width();
    REQUIRE(after > before + 40);
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(width() == Approx(before).margin(1));
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Y);
    CHECK(width() == Approx(after).margin(1));
}

TEST_CASE("a splitter dragged to the end leaves the views beside it a readable height") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options = explore(sample);
    options.layout = "compare";
    DrivenApp driven(options);
    driven.settle();
    const ImGuiWindow* below = ImGui::FindWindowByName("Cost###cost-1");
    const ImGuiWindow* middle = ImGui::FindWindowByName("Difference###difference-1");
    REQUIRE(below);
    REQUIRE(middle);
    driven.drive([&](ImGuiTestContext& c) {
        c.MouseMoveToPos({below->Pos.x + below->Size.x / 2, below->Pos.y - ImGui::GetFrameHeight() - 1});
        for (ImGuiDockNode* node = below->DockNode; node; node = node->ParentNode)
            if (node->IsSplitNode() && node->SplitAxis == ImGuiAxis_Y)
                c.MouseMoveToPos({below->Pos.x + below->Size.x / 2, node->ChildNodes[1]->Pos.y - 1});
        c.MouseDown();
        c.MouseMoveToPos({below->Pos.x + below->Size.x / 2, 30});
        c.MouseUp();
        c.Yield(8);
    });
    CHECK(middle->Size.y > 4 * ImGui::GetTextLineHeight());
}

TEST_CASE("undo returns a tab that was moved to another place or dragged out") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto dock_of = [](const char* title) { return ImGui::FindWindowByName(title)->DockId; };
    const ImGuiID home = dock_of("Difference###difference-1");
    REQUIRE(home == dock_of("Retention###retention-1"));
    const bool is_dragged_out = GENERATE(false, true);
    CAPTURE(is_dragged_out);
    driven.drive([&](ImGuiTestContext& c) {
        if (is_dragged_out)
            c.UndockWindow("//Difference###difference-1");
        else
            c.DockInto("//Difference###difference-1", "//Inspector###inspector-1");
        c.Yield(12);
    });
    const ImGuiID moved = dock_of("Difference###difference-1");
    if (is_dragged_out)
        REQUIRE(!ImGui::FindWindowByName("Difference###difference-1")->DockIsActive);
    else
        REQUIRE(moved == dock_of("Inspector###inspector-1"));
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    driven.settle();
    CHECK(dock_of("Difference###difference-1") == dock_of("Retention###retention-1"));
    CHECK(ImGui::FindWindowByName("Difference###difference-1")->DockIsActive);
    CHECK(dock_of("Inspector###inspector-1") != dock_of("Retention###retention-1"));
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Y);
    driven.settle();
    if (is_dragged_out)
        CHECK(!ImGui::FindWindowByName("Difference###difference-1")->DockIsActive);
    else
        CHECK(dock_of("Difference###difference-1") == dock_of("Inspector###inspector-1"));
}

TEST_CASE("undo rejoins a place that was split by a dropped tab") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const auto window = [](const char* title) { return ImGui::FindWindowByName(title); };
    const float height = window("Retention###retention-1")->Size.y;
    driven.drive([&](ImGuiTestContext& c) {
        c.DockInto("//Difference###difference-1", "//Retention###retention-1", ImGuiDir_Down);
        c.Yield(12);
    });
    REQUIRE(window("Retention###retention-1")->Size.y < 0.8f * height);
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Z);
    driven.settle();
    CHECK(window("Retention###retention-1")->Size.y == Approx(height).margin(1));
    CHECK(window("Difference###difference-1")->DockId == window("Retention###retention-1")->DockId);
    press(driven, ImGuiMod_Ctrl | ImGuiKey_Y);
    driven.settle();
    CHECK(window("Retention###retention-1")->Size.y < 0.8f * height);
}

TEST_CASE("a reopened trace has its saved state, and the command line has priority") {
    const SampleTrace sample;
    Tasks tasks([] {});
    const auto first = new_session(tasks);
    Session& session = *first;
    Document& document = session.open(sample.path);
    const auto by_default = trace_display_state(session, document);
    const auto runs = session.all_runs();
    session.set_visible(runs[2], false);
    session.pair.a = runs[1];
    session.pair.b = runs[3];
    session.mark = "w12";
    session.selection.select_run(runs[3]);
    session.selection.select_token(5);
    const auto state = trace_display_state(session, document);
    CHECK(state != by_default);
    save_annotations(document, state);
    const auto second = new_session(tasks);
    Session& again = *second;
    again.mark = "of the command line";
    Document& reopened = again.open(sample.path);
    restore_trace_display(again, reopened, load_trace_display(sample.path));
    CHECK(again.pair.a == session.pair.a);
    CHECK(again.pair.b == session.pair.b);
    CHECK(again.cursor() == session.cursor());
    CHECK(reopened.hidden == document.hidden);
    CHECK(again.mark == "of the command line");
    save_annotations(document, nullptr);
    CHECK(!fs::exists(annotations_path(sample.path)));
}

TEST_CASE("a mark is saved only with traces that contain the text") {
    const SampleTrace with(48), without(20);
    Tasks tasks([] {});
    const auto session = new_session(tasks);
    const Document& has = session->open(with.path);
    const Document& has_not = session->open(without.path);
    const auto is_marked = [&](const Document& document) {
        return trace_display_state(*session, document)["mark"] == "w41";
    };
    session->mark = "w41";
    CHECK(is_marked(has));
    CHECK_FALSE(is_marked(has_not));
    // State in the format of earlier versions.
    const auto later = new_session(tasks);
    Document& reopened = later->open(without.path);
    restore_trace_display(*later, reopened, {{"mark", "w41"}});
    CHECK(later->mark.empty());
    restore_trace_display(*later, reopened, {{"mark", "w12"}});
    CHECK(later->mark == "w12");
}

TEST_CASE("views and layout are saved shortly after a change, before the window closes") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    setenv("XDG_CONFIG_HOME", (sample.folder / "config").c_str(), 1);
    {
        DrivenApp driven(explore(sample), true);
        driven.settle();
        CHECK(!fs::exists(annotations_path(sample.path)));
        press(driven, ImGuiKey_2);
        CHECK(driven.draw_until(
            [&] { return fs::exists(annotations_path(sample.path)) && fs::exists(settings_file()); }, 4000));
        CHECK(load_settings(settings_file()).layout.is_object());
    }
    AppOptions options;
    options.traces = {sample.path};
    DrivenApp again(options, true);
    CHECK(!again.session().is_visible(again.session().all_runs()[1]));
    unsetenv("XDG_CONFIG_HOME");
}

TEST_CASE("a trace opened without a click is a recent trace, however the window ends") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    setenv("XDG_CONFIG_HOME", (sample.folder / "config").c_str(), 1);
    DrivenApp driven(explore(sample), true);
    CHECK(driven.draw_until([&] { return fs::exists(settings_file()); }, 4000));
    CHECK(load_settings(settings_file()).recent_traces == std::vector<std::string>{sample.path.string()});
    CHECK(load_settings(settings_file()).layout.is_object());
    unsetenv("XDG_CONFIG_HOME");
}

TEST_CASE("the program receives the signal to end") {
    std::atomic<bool> told = false;
    {
        const EndSignal end([&] { told = true; });
        raise(SIGTERM);
        for (int i = 0; i < 10000 && !told; ++i) usleep(1000);
        CHECK(end.signal() == SIGTERM);
    }
    CHECK(told);
}

TEST_CASE("a crash log contains the last click, version and commit") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("Runs###runs").c_str());
        c.MouseMove("**/A");
        c.Yield(12);
        c.MouseClick();
    });
    CHECK(last_noted_action() == "click in Runs: A");
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        setenv("XDG_STATE_HOME", sample.folder.path().c_str(), 1);
        install_crash_log();
        crash_here();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    const std::string log = text_of(sample.folder / "kvscope" / "crash.log");
    CHECK(log.find(program::version()) != std::string::npos);
    CHECK(log.find(program::commit()) != std::string::npos);
    CHECK(log.find("last action: click in Runs: A") != std::string::npos);
    CHECK(log.find("kvscope::gui::testing::(anonymous namespace)::crash_here()") != std::string::npos);
}

TEST_CASE("a success is not an error") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    DrivenApp driven(AppOptions{});
    driven.app().notice("done");
    CHECK(driven.app().n_errors() == 0);
    driven.app().notice("not done", true);
    CHECK(driven.app().n_errors() == 1);
}

TEST_CASE("the palette shows an open view, and opens a closed one") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    const size_t n_views = driven.app().views().size();
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        c.KeyCharsReplaceEnter("difference");
        c.Yield(4);
    });
    CHECK(driven.app().views().size() == n_views);
    CHECK(ImGui::FindWindowByName("Difference###difference-1")->DockTabIsVisible);
}

}  // namespace kvscope::gui::testing
