#include <catch2/catch.hpp>
#include <future>

#include "app/gui/session/annotations.h"
#include "app/gui/session/selection_text.h"
#include "app/gui/session/session_state.h"
#include "app/gui/view/actions.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace fs = std::filesystem;

TEST_CASE("--select finds run, layer, head and tokens, and says what there is not") {
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

TEST_CASE("a note on the selected tokens is on disk as soon as it is written, and goes when it is emptied") {
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

TEST_CASE("Space shows one of the compared runs after the other, and Escape what was shown before") {
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
    press(ImGuiKey_Space);  // nobody chose A and B: the two of Difference
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
    if (is_notice) CHECK(test_window()->seconds_to_sleep() > 0);  // till it goes
    go_on.set_value();
    driven.settle();
}

TEST_CASE("a part of a picture is cut out, and clipped to it") {
    const Screenshot whole{2, 2, {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}};
    CHECK(cut_out(whole, 1, 0, 1, 2).rgb == std::vector<uint8_t>{1, 1, 1, 3, 3, 3});
    const Screenshot clipped = cut_out(whole, 1, 1, 50, 50);
    CHECK(clipped.width == 1);
    CHECK(clipped.height == 1);
    CHECK(clipped.rgb == std::vector<uint8_t>{3, 3, 3});
    CHECK(cut_out(whole, 5, 5, 2, 2).rgb.empty());
}

TEST_CASE("keys are called by what is printed on them") {
    Action action;
    action.key = ImGuiKey_LeftBracket;
    CHECK(key_text(action) == "[");
    action.key = ImGuiMod_Ctrl | ImGuiKey_Minus;
    CHECK(key_text(action) == "Ctrl+-");
    action.key = ImGuiMod_Shift | ImGuiKey_Slash;
    CHECK(key_text(action) == "?");
    action.key = ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P;
    CHECK(key_text(action) == "Ctrl+Shift+P");
}

}  // namespace kvscope::gui::testing
