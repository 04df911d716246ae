#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "app/gui/saved/recent_files.h"
#include "app/gui/session/settings.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#ifdef KVSCOPE_WITH_ENGINE
#include "tests/gui/held_steps.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"
#endif
#include "tests/skip.h"
#include "trace/reader.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;

/// Settings in their own folder, with the sample, a missing trace and an unfinished one as recent files.
struct RecentSettings {
    SampleTrace sample;
    fs::path gone = sample.folder / "gone.h5";
    fs::path unfinished = sample.folder / "begun.h5";
    fs::path workspace = sample.folder / "work.kvscope";

    RecentSettings() {
        setenv("XDG_CONFIG_HOME", sample.folder.path().c_str(), 1);
        fs::create_directories(unfinished.string() + ".part");
        Settings settings;
        std::ofstream(workspace) << "a workspace";
        for (const auto& path : {unfinished, gone, workspace, sample.path}) settings.remember_trace(path);
        settings.remember_model(sample.folder / "some.gguf");
        save_settings(settings, settings_file());
    }
    ~RecentSettings() { unsetenv("XDG_CONFIG_HOME"); }
};

bool has_word_in(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

std::vector<std::string> open_kinds(DrivenApp& driven) {
    std::vector<std::string> names;
    for (const auto& open : driven.app().views()) names.push_back(open->kind->name);
    return names;
}

}  // namespace

TEST_CASE("one window clears the recent traces, and traces that another window opens meanwhile stay") {
    const trace::sample::TemporaryFolder folder;
    const fs::path file = folder / "settings.json";
    Settings at_first;
    for (const char* path : {"/a.h5", "/b.h5"}) at_first.remember_trace(path);
    save_settings(at_first, file);
    const Settings before = load_settings(file);
    Settings one = before, other = before;
    other.remember_trace("/other.h5");
    save_settings(other, file, &before);
    one.recent_traces.clear();
    one.remember_trace("/one.h5");
    save_settings(one, file, &before);
    CHECK(load_settings(file).recent_traces == std::vector<std::string>{"/one.h5", "/other.h5"});
}

TEST_CASE("the start page lists recent traces with folders, marks missing ones, and opens one by a click") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const RecentSettings recent;
    DrivenApp driven(AppOptions{}, true);
    driven.settle();
    const std::string shown = driven.shown_text();
    CHECK(has_word_in(shown, "sample.h5"));
    CHECK(has_word_in(shown, recent.sample.folder.path().string()));
    const trace::Reader reader(recent.sample.path);
    CHECK(has_word_in(shown, reader.created_utc().substr(0, 10)));
    CHECK(has_word_in(shown, reader.run(0, 1).policy));
    CHECK(has_word_in(shown, "work.kvscope"));
    CHECK(has_word_in(shown, "gone.h5"));
    CHECK(has_word_in(shown, "not found"));
    CHECK(has_word_in(shown, "unfinished"));
    if (driven.app().engine()) CHECK(has_word_in(shown, "some.gguf"));
    driven.drive([](ImGuiTestContext& c) { c.ItemClick("//Start/**/sample.h5"); });
    driven.settle();
    CHECK(driven.session().documents().size() == 1);
}

TEST_CASE("an unfinished run is listed once among the recent traces, whether opened by folder or by file") {
    const trace::sample::TemporaryFolder folder;
    const fs::path ended = folder / "ended.h5", begun = folder / "begun.h5", both = folder / "both.h5";
    for (const auto& whole : {ended, both}) trace::sample::write(whole);
    for (const auto& part : {begun, both}) fs::create_directories(part.string() + ".part");
    Settings settings;
    for (const auto& path : {ended, begun, both}) {
        settings.remember_trace(path);
        settings.remember_trace(path.string() + ".part");
    }
    RecentFiles recent(settings);
    recent.update(0);
    using State = RecentFile::State;
    const std::vector<RecentFile> expected{{both.string() + ".part", State::unfinished},
                                           {both, State::there},
                                           {begun.string() + ".part", State::unfinished},
                                           {ended, State::there}};
    CHECK(recent.traces() == expected);
}

TEST_CASE("an opened or saved workspace is one of the recent files") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const RecentSettings recent;
    const fs::path saved = recent.sample.folder / "saved.kvscope";
    DrivenApp driven(explore(recent.sample), true);
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_S);
        c.Yield(2);
        c.SetRef("//$FOCUSED");
        c.ItemInputValue("**/##path", saved.c_str());
        c.Yield(2);
    });
    REQUIRE(driven.draw_until([&] { return fs::exists(saved); }, 4000));
    driven.settle();
    CHECK(driven.app().settings().recent_traces.front() == saved);
    driven.app().open_trace(recent.sample.path);
    driven.app().open_trace(saved);
    CHECK(driven.app().settings().recent_traces.front() == saved);
}

TEST_CASE("File > Open recent opens a trace, and Clear removes all entries permanently") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const RecentSettings recent;
    {
        DrivenApp driven(AppOptions{}, true);
        driven.drive([&](ImGuiTestContext& c) {
            c.MenuClick("//##MainMenuBar/File/Open recent");
            c.Yield(2);
            c.SetRef("//$FOCUSED");
            c.ItemClick("**/sample.h5");
            c.Yield(2);
        });
        driven.settle();
        CHECK(driven.session().documents().size() == 1);
        driven.drive([&](ImGuiTestContext& c) { c.MenuClick("//##MainMenuBar/File/Open recent/Clear"); });
        CHECK(driven.app().settings().recent_traces.empty());
        CHECK(driven.app().may_close());
    }
    CHECK(load_settings(settings_file()).recent_traces.empty());
}

TEST_CASE("Try your own prompt shows only Run until the first trace opens, and then restores all views") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    if (!find_view_kind("run")) KVSCOPE_SKIP("built without the engine");
    const SampleTrace sample;
    AppOptions options;
    options.layout = "explore";
    DrivenApp driven(options);
    driven.settle();
    const auto before = open_kinds(driven);
    driven.drive([](ImGuiTestContext& c) { c.ItemClick("//Start/**/##Try your own prompt"); });
    driven.settle();
    CHECK(open_kinds(driven) == std::vector<std::string>{"run"});
    CHECK(ImGui::FindWindowByName("Run###run-1")->Size.x == ImGui::GetMainViewport()->WorkSize.x);
    driven.app().open_trace(sample.path);
    driven.settle();
    CHECK(open_kinds(driven) == before);
    driven.settle();
    // In each place, the first view of the layout is in front.
    for (const char* front : {"Retention###retention-1", "Runs###runs-1", "Inspector###inspector-1"}) {
        CAPTURE(front);
        CHECK(ImGui::FindWindowByName(front)->DockTabIsVisible);
    }
    const ImGuiDockNode* left = ImGui::FindWindowByName("Runs###runs-1")->DockNode;
    REQUIRE(left);
    REQUIRE(left->TabBar);
    CHECK(std::string(left->TabBar->Tabs[0].Window->Name) == "Runs###runs-1");
}

TEST_CASE("Ctrl+R shows only the form if no trace is open, and one view of many with a trace") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    if (!find_view_kind("run")) KVSCOPE_SKIP("built without the engine");
    const SampleTrace sample;
    AppOptions options;
    options.layout = "explore";
    DrivenApp driven(options);
    driven.settle();
    const auto before = open_kinds(driven);
    const auto press = [&] {
        driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_R); });
        driven.settle();
    };
    press();
    CHECK(open_kinds(driven) == std::vector<std::string>{"run"});
    press();  // would start a run if the form were filled in
    CHECK(open_kinds(driven) == std::vector<std::string>{"run"});
    driven.app().open_trace(sample.path);
    driven.settle();
    CHECK(open_kinds(driven) == before);
    press();
    CHECK(open_kinds(driven) == before);
    CHECK(ImGui::FindWindowByName("Run###run-1")->DockTabIsVisible);
}

TEST_CASE("Ctrl+R shows only the form if no trace is open and another view is maximized") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    if (!find_view_kind("run")) KVSCOPE_SKIP("built without the engine");
    AppOptions options;
    options.layout = "explore";
    DrivenApp driven(options);
    driven.app().show_view(*find_view_kind("log"));
    driven.settle();
    driven.start_by_palette("maximize the view");
    driven.settle();
    REQUIRE(open_kinds(driven) == std::vector<std::string>{"log"});
    driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_R); });
    driven.settle();
    CHECK(open_kinds(driven) == std::vector<std::string>{"run"});
    CHECK(ImGui::FindWindowByName("Run###run-1")->Size.x == ImGui::GetMainViewport()->WorkSize.x);
    driven.start_by_palette("maximize the view");
    driven.settle();
    CHECK(open_kinds(driven).size() > 10);
}

#ifdef KVSCOPE_WITH_ENGINE

TEST_CASE("answers to an own question come to the front if the form was shown alone") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const bool is_by_hand = GENERATE(false, true);
    CAPTURE(is_by_hand);
    AppOptions options;
    options.layout = "explore";
    HeldWindow held(options);
    DrivenApp& driven = held.driven;
    driven.drive([](ImGuiTestContext& c) { c.ItemClick("//Start/**/##Try your own prompt"); });
    driven.settle();
    for (int i = 0; is_by_hand && i < 2; ++i) {
        driven.start_by_palette("maximize the view");
        driven.settle();
    }
    REQUIRE(open_kinds(driven) == std::vector<std::string>{"run"});
    RunRequest request;
    request.model = small_model;
    request.context = text;
    request.questions = {"Who jumps?"};
    request.policies = {"echokv:recent=9,maps=" + held.maps.path()};
    request.budgets = "16";
    request.options.n_new = 24;
    request.options.ignore_eos = true;
    request.output = held.folder / "run.h5";
    held.steps.allow(3);
    REQUIRE(held.engine().run(request) != 0);
    held.wait_after(3);
    const auto is_in_front = [](const char* title) {
        const ImGuiWindow* window = ImGui::FindWindowByName(title);
        return window && window->Active && window->DockTabIsVisible;
    };
    CHECK(driven.draw_until([&] { return is_in_front("Answers###answers-1"); }, 200));
    for (int i = 0; i < 20; ++i) driven.draw_until([] { return false; }, 1);
    CHECK(is_in_front("Answers###answers-1"));
    CHECK(is_in_front("Inspector###inspector-1"));
    CHECK(open_kinds(driven).size() > 10);
    held.let_it_end();
    driven.settle();
    CHECK(is_in_front("Answers###answers-1"));
    const auto& told = driven.app().notices();
    CHECK(std::find(told.begin(), told.end(), "run.h5 is complete: the run has ended") != told.end());
}

TEST_CASE(
    "Continue the run, on the start page or for an opened trace, finishes a run that was interrupted during decoding") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const bool from_palette = GENERATE(false, true);
    const RecentSettings recent;
    HeldSession before("interrupted");
    auto request = before.gui.request({before.echokv(), "snapkv:window=4", "h2o"}, "16");
    request.options.n_new = 24;
    request.options.ignore_eos = true;
    before.steps.allow(3);
    before.gui.engine->run(request);
    before.wait_after(3, [&] { return !before.gui.engine->partial_answers().empty(); });
    before.cancel();
    before.gui.engine.reset();  // the app that made the run is closed
    REQUIRE(fs::exists(request.output.string() + ".part"));
    REQUIRE_FALSE(fs::exists(request.output));
    {
        AppOptions unfinished;
        unfinished.traces = {request.output.string() + ".part"};
        unfinished.view = "answers";
        unfinished.traces.push_back(small_model);
        DrivenApp looking(unfinished);
        looking.settle();
        const std::string said = looking.shown_text();
        CHECK_THAT(said, Catch::Matchers::Contains("snapkv:window=4 @ 16"));
        CHECK_THAT(said, Catch::Matchers::Contains("tokens of its answer were decoded"));
        if (from_palette) {
            // The trace appears after the other model is loaded.
            REQUIRE(looking.draw_until([&] { return !looking.app().engine()->status().busy(); }, patience));
            looking.start_by_palette("continue");
            REQUIRE(looking.draw_until([&] { return fs::exists(request.output); }, patience));
            REQUIRE(looking.draw_until([&] { return !looking.app().engine()->status().busy(); }, patience));
            looking.settle();
            REQUIRE(looking.session().documents().size() == 1);
            CHECK(looking.session().focus()->path() == request.output);
            CHECK(looking.session().focus()->reader()->complete());
            CHECK_FALSE(looking.session().focus()->is_unfinished());
            CHECK(looking.shown_text().find("tokens of its answer were decoded") == std::string::npos);
            CHECK(looking.app().n_errors() == 0);
            return;
        }
    }
    Settings settings;
    settings.remember_trace(request.output);
    settings.remember_model(small_model);
    save_settings(settings, settings_file());

    DrivenApp driven(AppOptions{}, true);
    driven.settle();
    driven.drive([](ImGuiTestContext& c) { c.ItemClick("//Start/**/Continue the run"); });
    REQUIRE(driven.draw_until([&] { return fs::exists(request.output); }, patience));
    REQUIRE(driven.draw_until([&] { return !driven.app().engine()->status().busy(); }, patience));
    driven.settle();
    REQUIRE(driven.session().documents().size() == 1);
    CHECK(driven.session().documents().front()->reader()->complete());
    CHECK(driven.session().documents().front()->reader()->n_runs(0) == 4);
    CHECK(driven.app().n_errors() == 0);
    driven.draw_until([&] { return !driven.app().settings().recent_traces.empty(); }, 20);
    CHECK(driven.app().settings().recent_traces.front() == request.output);
}

#endif

TEST_CASE("closing the last trace shows the start page in any layout") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options = explore(sample);
    options.layout = GENERATE("explore", "report");
    DrivenApp driven(options);
    driven.settle();
    driven.app().dismiss_start();  // as choosing a layout does
    driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_W); });
    driven.settle();
    REQUIRE(driven.session().documents().empty());
    bool is_offered = false;
    driven.drive([&](ImGuiTestContext& c) { is_offered = c.ItemExists("//Start/**/##Open a trace"); });
    CHECK(is_offered);
}

}  // namespace kvscope::gui::testing
