#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <functional>
#include <future>

#include "analysis/tables/table_format.h"
#include "app/gui/session/annotations.h"
#include "app/gui/session/parse_selection.h"
#include "app/gui/session/session_state.h"
#include "app/gui/view/action_registry.h"
#include "app/gui/view_data/runs_alone.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/two_traces.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace fs = std::filesystem;

namespace {

/// Moves the mouse over the prompt's lines until it is over the wanted token.
bool move_over_prompt(ImGuiTestContext& c, const Session& session,
                      const std::function<bool(const Cursor&)>& is_wanted) {
    const ImRect text = c.WindowInfo("//prompt-1/text").Window->InnerRect;
    for (float y = text.Min.y + 30; y < text.Max.y; y += 12) {
        for (float x = text.Max.x - 6; x > text.Min.x; x -= 12) {
            c.MouseTeleportToPos({x, y});
            c.Yield(2);
            if (session.hover().has_tokens() && is_wanted(session.hover())) return true;
        }
    }
    return false;
}

/// Writes the sample's first prompt with only the full cache's run, so that no run is selected.
void write_full_run(const fs::path& path) {
    const trace::sample::Options sizes;
    trace::Writer writer(path, trace::sample::recipe, {.force = true, .generator = "sample"});
    writer.write_model(trace::sample::model(sizes));
    const auto prompt = trace::sample::prompt(sizes, 0);
    writer.write_prompt(0, prompt);
    writer.write_run(0, 0, trace::sample::full_run(sizes, prompt));
    writer.finish();
}

}  // namespace

TEST_CASE("typed places are parsed") {
    CHECK(convert_typed_place("t700") == "token=700");
    CHECK(convert_typed_place(" T700-720 ") == "token=700-720");
    CHECK(convert_typed_place("l17 h2") == "layer=17,head=2");
    CHECK(convert_typed_place("layer 17, head 2, token 5") == "layer=17,head=2,token=5");
    CHECK(convert_typed_place("s3") == "step=3");
    for (const char* none : {"", "t", "700", "trace", "t7x", "l17 snapkv", "h-2", "layers", "t7 t"}) {
        CAPTURE(none);
        CHECK(convert_typed_place(none) == std::nullopt);
    }
}

TEST_CASE("the palette goes to a token, a layer and head, and to a text of the prompt: two steps") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    Session& session = driven.session();
    driven.start_by_palette("t7");
    CHECK(session.cursor().first_token == 7);
    CHECK(session.cursor().last_token == 7);
    driven.start_by_palette("l2 h1");
    CHECK(session.cursor().layer == 2);
    CHECK(session.cursor().kv_head == 1);
    CHECK(session.cursor().first_token == 7);
    const Cursor before = session.cursor();
    driven.start_by_palette("l99");
    CHECK(session.cursor() == before);
    CHECK(driven.shown_text().find("layers of the model: ") != std::string::npos);
}

TEST_CASE("--select finds run, layer, head and tokens, and reports missing ones") {
    const SampleTrace sample;
    Tasks tasks([] {});
    Session session(tasks);
    CHECK_THROWS_AS(parse_selection(session, "token=1"), std::invalid_argument);
    const int id = session.open(sample.path).id();
    const std::string last = session.look(session.all_runs().back()).label;
    const Cursor cursor = parse_selection(session, "token=2-4,layer=1,head=0,run=" + last);
    CHECK(cursor.run == session.all_runs().back());
    CHECK(cursor.run.document == id);
    CHECK(cursor.layer == 1);
    CHECK(cursor.kv_head == 0);
    CHECK(cursor.first_token == 2);
    CHECK(cursor.last_token == 4);
    CHECK(parse_selection(session, "step=5").step == 5);
    CHECK(parse_selection(session, "run=" + last).run == session.all_runs().back());
    for (const char* wrong : {"token=100000", "token=4-2", "token=x", "layer=-1", "layer=99", "head=99", "step=6",
                              "run=nobody", "token", "colour=3", "token=1,,layer=0"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(parse_selection(session, wrong), std::invalid_argument);
    }
}

TEST_CASE("a note on the selected tokens is saved immediately, and removed if it is emptied") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    options.select = "token=2-3";
    DrivenApp driven(options);
    driven.settle();
    const auto write = [&](const char* text) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef(DrivenApp::window_of("Inspector###inspector").c_str());
            c.ItemInputValue("**/##note", text);
            c.Yield(3);
        });
    };
    write("the needle");
    Document reopened(0, sample.path);
    load_annotations(reopened);
    REQUIRE(reopened.note_on(2, 3));
    CHECK(reopened.note_on(2, 3)->text == "the needle");
    write("");
    CHECK_FALSE(fs::exists(annotations_path(sample.path)));
}

TEST_CASE("a note is kept if other tokens are selected during typing") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options = explore(sample);
    options.select = "token=2";
    DrivenApp driven(options);
    driven.settle();
    const Session& session = driven.session();
    bool is_found = false;
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("Inspector###inspector").c_str());
        c.ItemClick("**/##note");
        c.KeyChars("the needle");
        c.Yield(2);
        is_found = move_over_prompt(c, session, [](const Cursor& over) { return over.first_token > 5; });
        c.KeyDown(ImGuiMod_Shift);
        c.MouseClick(ImGuiMouseButton_Left);
        c.KeyUp(ImGuiMod_Shift);
        c.Yield(4);
    });
    REQUIRE(is_found);
    driven.settle();
    REQUIRE(session.cursor().first_token == 2);
    REQUIRE(session.cursor().last_token > 5);
    const Document& document = *session.focus();
    REQUIRE(document.note_on(2, 2));
    CHECK(document.note_on(2, 2)->text == "the needle");
    CHECK(document.notes.size() == 1);
}

TEST_CASE("P pins the token under the mouse in the trace of that token") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("prompt"));
    driven.settle();
    const Session& session = driven.session();
    const Document& first = *session.documents().at(0);
    const Document& second = *session.documents().at(1);
    int64_t token = -1;
    driven.drive([&](ImGuiTestContext& c) {
        c.WindowFocus("//prompt-1");
        if (!move_over_prompt(c, session, [&](const Cursor& over) { return over.run.document == second.id(); })) return;
        token = session.hover().first_token;
        c.KeyPress(ImGuiKey_P);
        c.Yield(2);
    });
    REQUIRE(token >= 0);
    const auto pins_of = [](const Document& document) {
        const auto found = document.pins.find(document.prompt);
        return found == document.pins.end() ? std::set<int64_t>{} : found->second;
    };
    CHECK(pins_of(first).empty());
    CHECK(pins_of(second) == std::set<int64_t>{token});
}

TEST_CASE("a search steps through its matches without a selected run") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    write_full_run(folder / "full.h5");
    AppOptions options;
    options.traces = {folder / "full.h5"};
    options.view = "prompt";
    DrivenApp driven(options);
    driven.settle();
    REQUIRE(!driven.session().cursor().run.valid());
    driven.drive([](ImGuiTestContext& c) { c.ItemInputValue("//prompt-1/##prompt search", "w1"); });
    driven.settle();
    driven.drive([](ImGuiTestContext& c) {
        c.KeyPress(ImGuiKey_F3);
        c.Yield(2);
    });
    CHECK(driven.session().cursor().has_tokens());
    CHECK(driven.session().cursor().run.document == driven.session().focus()->id());
}

TEST_CASE("Alt+Left and undo show a selection in another prompt") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    trace::sample::Options sizes;
    sizes.n_questions = 2;
    trace::sample::write(folder / "asked.h5", sizes);
    AppOptions options;
    options.traces = {folder / "asked.h5"};
    options.layout = "explore";
    DrivenApp driven(options);
    driven.settle();
    Session& session = driven.session();
    const Document& document = *session.focus();
    session.pair.a = document.key_of(0, 2);
    session.selection.select_run(document.key_of(0, 1));
    driven.settle();
    const auto& second = document.reader()->prompt(1);
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("Runs###runs").c_str());
        c.ItemClick(
            fmt::format("**/{} ({} tokens)###prompt1", second.name, analysis::format_count(second.n_tokens)).c_str());
        c.Yield(8);
    });
    driven.settle();
    REQUIRE(document.prompt == 1);
    REQUIRE(session.cursor().run == document.key_of(1, 1));
    const ImGuiKeyChord key = GENERATE(ImGuiMod_Alt | ImGuiKey_LeftArrow, ImGuiMod_Ctrl | ImGuiKey_Z);
    CAPTURE(key);
    driven.drive([&](ImGuiTestContext& c) {
        c.WindowFocus(DrivenApp::window_of("Retention###retention").c_str());
        c.KeyPress(key);
        c.Yield(8);
    });
    CHECK(session.cursor().run == document.key_of(0, 1));
    CHECK(document.prompt == 0);
    CHECK(session.pair.a == document.key_of(0, 2));
}

TEST_CASE("the window's title names the focused trace, and no trace after it is closed") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("retention"));
    driven.settle();
    Session& session = driven.session();
    const auto title = [&] {
        driven.settle();
        return std::string(glfwGetWindowTitle(glfwGetCurrentContext()));
    };
    session.selection.select_run(session.documents().at(0)->key_of(0, 1));
    CHECK(title() == "one.h5 – kvscope");
    session.selection.select_run(session.documents().at(1)->key_of(0, 1));
    CHECK(title() == "two.h5 – kvscope");
    session.close(session.documents().at(1)->id());
    CHECK(title() == "one.h5 – kvscope");
    session.close(session.documents().at(0)->id());
    CHECK(title() == "kvscope");
}

TEST_CASE("a notice names the closed trace and how to reopen it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("retention"));
    driven.settle();
    driven.session().selection.select_run(driven.session().documents().at(1)->key_of(0, 1));
    driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_W); });
    CHECK(driven.session().documents().size() == 1);
    CHECK_THAT(driven.shown_text(), Catch::Contains("two.h5 closed. Reopen it with File > Open recent"));
}

TEST_CASE("a run that disappears while the palette lists it is not selected") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("runs"));
    driven.settle();
    Session& session = driven.session();
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
        c.Yield(2);
        c.KeyChars("Go to run two.h5");
        c.Yield(2);
        session.close(session.documents().at(1)->id());
        c.KeyPress(ImGuiKey_Enter);
        c.Yield(2);
    });
    const RunKey selected = session.cursor().run;
    CHECK((!selected.valid() || session.exists(selected)));
    CHECK(driven.app().n_errors() == 0);
}

TEST_CASE("Space shows the compared runs in turn, and Escape restores the previous runs") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options;
    options.traces = {sample.path};
    DrivenApp driven(options);
    driven.settle();
    Session& session = driven.session();
    const auto before = session.visible_runs();
    REQUIRE(before.size() > 2);
    const auto press = [&](ImGuiKey key) {
        driven.drive([&](ImGuiTestContext& c) {
            c.WindowFocus(DrivenApp::window_of("Retention###retention").c_str());
            c.KeyPress(key);
        });
    };
    press(ImGuiKey_Space);  // A and B are not chosen, so the runs of Difference are used
    CHECK(session.visible_runs() == std::vector<RunKey>{before[0]});
    press(ImGuiKey_Space);
    CHECK(session.visible_runs() == std::vector<RunKey>{before[1]});
    press(ImGuiKey_Escape);
    CHECK(session.visible_runs() == before);
    session.pair.a = before[2];
    session.pair.b = before[0];
    press(ImGuiKey_Space);
    CHECK(session.visible_runs() == std::vector<RunKey>{before[2]});
    press(ImGuiKey_Escape);
    CHECK(session.visible_runs() == before);
}

TEST_CASE("a single run, budget or policy can be shown with the full cache") {
    const SampleTrace sample;
    Tasks tasks([] {});
    Session session(tasks);
    session.open(sample.path);
    const auto all = session.all_runs();
    for (const RunKey& key : all) {
        const trace::RunAttributes of = session.attributes(key);
        if (of.policy == "full") continue;
        for (const Alone which : {Alone::run, Alone::budget, Alone::policy}) {
            show_runs_alone(session, key, which);
            for (const RunKey& other : all) {
                const auto& run = session.attributes(other);
                const bool is_wanted =
                    run.policy == "full" ||
                    (which == Alone::run      ? other == key
                     : which == Alone::budget ? run.budget == of.budget && run.budget_of == of.budget_of
                                              : run.policy == of.policy && run.parameters_json == of.parameters_json);
                CAPTURE(session.look(key).label, session.look(other).label);
                CHECK(session.is_visible(other) == is_wanted);
            }
        }
    }
    const auto named = std::find_if(all.begin(), all.end(), [&](const RunKey& key) {
        return session.attributes(key).policy == "snapkv" && session.attributes(key).budget == 24;
    });
    REQUIRE(named != all.end());
    CHECK(show_runs_alone_label(session, *named, Alone::run) == "Only " + session.attributes(*named).label);
    CHECK(show_runs_alone_label(session, *named, Alone::budget) == "Only budget 24");
}

TEST_CASE("a right click on a run shows only its budget in two steps") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    Session& session = driven.session();
    const RunKey key = session.all_runs().at(1);
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef("//runs-1");
        c.MouseMove(("**/" + key.text() + "/" + session.attributes(key).label).c_str());
        c.MouseClick(ImGuiMouseButton_Right);
        c.Yield(2);
        c.ItemClick(("//$FOCUSED/" + show_runs_alone_label(session, key, Alone::run)).c_str());
    });
    driven.settle();
    for (const RunKey& other : session.all_runs())
        CHECK(session.is_visible(other) == (other == key || session.attributes(other).policy == "full"));
}

TEST_CASE("an idle window wakes up for the tooltip under the mouse") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "retention"));
    driven.settle();
    bool is_due = true;
    int n_waiting = 0;
    driven.drive([&](ImGuiTestContext& c) {
        c.MouseMove("//retention-1/overview");
        const float delay = ImGui::GetStyle().HoverDelayNormal;
        for (int i = 0; i < 60; ++i) {
            c.Yield();
            const ImGuiContext& now = *ImGui::GetCurrentContext();
            const double seconds = test_window()->seconds_to_sleep();
            if (now.HoverItemDelayId == 0 || now.HoverItemDelayTimer >= delay || seconds == 0) continue;
            is_due = is_due && seconds > 0 && seconds <= static_cast<double>(delay);
            ++n_waiting;
        }
    });
    CHECK(is_due);
    CHECK(n_waiting > 0);
}

TEST_CASE("a window that shows a notice, or waits for a task, sleeps until something changes") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    for (int i = 0; i < 6; ++i) driven.settle();
    REQUIRE(test_window()->seconds_to_sleep() != 0);
    const bool is_notice = GENERATE(true, false);
    std::promise<void> go_on;
    const TaskSlot<int> slot;
    const auto ask = [&] {
        driven.app().tasks().ask(slot, "", "once", [done = go_on.get_future().share()] {
            done.wait();
            return 1;
        });
    };
    if (is_notice)
        driven.app().notice("something has been done");
    else
        ask();
    for (int i = 0; i < 12; ++i) test_window()->draw_frame([&] { return driven.app().frame(); });
    CHECK(test_window()->seconds_to_sleep() != 0);
    CHECK((driven.app().tasks().n_pending() > 0) == !is_notice);
    if (is_notice) CHECK(test_window()->seconds_to_sleep() > 0);  // until the notice disappears
    go_on.set_value();
    driven.settle();
}

TEST_CASE("a part of a picture is cut out and limited to the picture") {
    const Screenshot whole{2, 2, {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}};
    CHECK(crop_screenshot(whole, 1, 0, 1, 2).rgb == std::vector<uint8_t>{1, 1, 1, 3, 3, 3});
    const Screenshot clipped = crop_screenshot(whole, 1, 1, 50, 50);
    CHECK(clipped.width == 1);
    CHECK(clipped.height == 1);
    CHECK(clipped.rgb == std::vector<uint8_t>{3, 3, 3});
    CHECK(crop_screenshot(whole, 5, 5, 2, 2).rgb.empty());
}

TEST_CASE("keys have the names that are printed on them") {
    Action action;
    action.key = ImGuiKey_LeftBracket;
    CHECK(shortcut_text(action) == "[");
    action.key = ImGuiMod_Ctrl | ImGuiKey_Minus;
    CHECK(shortcut_text(action) == "Ctrl+-");
    action.key = ImGuiMod_Shift | ImGuiKey_Slash;
    CHECK(shortcut_text(action) == "?");
    action.key = ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P;
    CHECK(shortcut_text(action) == "Ctrl+Shift+P");
}

}  // namespace kvscope::gui::testing
