// Tests of closing the app while a run is in progress.
#ifdef KVSCOPE_WITH_ENGINE

#include <imgui_internal.h>

#include <catch2/catch.hpp>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "app/gui/view_data/run_form.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/held_steps.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// A run that is paused in the middle of its answer.
struct WaitingRun : HeldWindow {
    WaitingRun() : HeldWindow(AppOptions{}) {
        RunRequest request;
        request.model = small_model;
        request.context = text;
        request.policies = {"echokv:recent=9,maps=" + maps.path()};
        request.budgets = "16";
        request.options.n_new = 24;
        request.options.ignore_eos = true;
        request.output = folder / "run.h5";
        steps.allow(3);
        engine().run(request);
        wait_after(3);
    }
};

constexpr const char* stay = "//Quit kvscope?/Stay";

bool is_shown() {
    const ImGuiWindow* question = ImGui::FindWindowByName("Quit kvscope?");
    return question && question->Active;
}

}  // namespace

TEST_CASE("the question leaves an open file dialog unchanged, and Escape closes only the question") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WaitingRun run;
    run.driven.drive([&](ImGuiTestContext& c) {
        const auto has_dialog = [&] {
            return c.ItemExists("//Open a trace###file dialog/##path") || c.ItemExists("//$FOCUSED/##path");
        };
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
        c.Yield(3);
        CHECK(has_dialog());
        CHECK(!run.driven.app().may_close());
        c.Yield(3);
        CHECK(is_shown());
        c.KeyPress(ImGuiKey_Escape);
        c.Yield(3);
        CHECK(!is_shown());
        CHECK(has_dialog());
        c.KeyPress(ImGuiKey_Escape);
        c.Yield(3);
        CHECK(!has_dialog());
    });
}

TEST_CASE("Escape clears the selection and cancels no run") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WaitingRun run;
    for (int i = 0; i < 3; ++i) run.driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_Escape); });
    CHECK(run.engine().status().state == EngineStatus::State::running);
}

TEST_CASE("Quit during a run asks: Stay and Escape continue the run, Quit cancels it and closes the app") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WaitingRun run;
    DrivenApp& driven = run.driven;
    std::vector<bool> is_asked;
    // A single drive, because each drive begins without popups.
    driven.drive([&](ImGuiTestContext& c) {
        const auto note = [&] {
            c.Yield(2);
            is_asked.push_back(is_shown());
        };
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_Q);
        note();
        c.ItemClick(stay);
        note();
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_Q);
        note();
        c.KeyPress(ImGuiKey_Escape);
        note();
    });
    CHECK(is_asked == std::vector<bool>{true, false, true, false});
    CHECK(!driven.has_ended());
    CHECK(run.engine().status().state == EngineStatus::State::running);
    driven.drive([&](ImGuiTestContext& c) {
        CHECK(!driven.app().may_close());  // the window's close button
        c.Yield(3);
        c.ItemClick("//Quit kvscope?/Quit", 0, ImGuiTestOpFlags_NoError);
    });
    CHECK(driven.has_ended());
    CHECK(run.engine().status().state == EngineStatus::State::cancelling);
}

TEST_CASE("the question names each job in the queue that Quit discards") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WaitingRun run;
    RunRequest next;
    next.model = small_model;
    next.context = text;
    next.policies = {"snapkv:window=8"};
    next.budgets = "16";
    const auto queue = [&](const char* output) {
        next.output = run.folder / output;
        run.engine().run(next);
    };
    const auto question = [&] {
        run.driven.drive([](ImGuiTestContext& c) { c.Yield(3); });
        const std::string all = run.driven.shown_text();
        return all.substr(std::min(all.find("Still in progress: run.h5: 2 runs"), all.size()));
    };
    using Catch::Matchers::Contains;
    queue("second.h5");
    CHECK(!run.driven.app().may_close());
    CHECK_THAT(question(), Contains("1 job waits in the queue. Quit discards it") && Contains("second.h5: 2 runs"));
    queue("third.h5");
    CHECK_THAT(question(), Contains("2 jobs wait in the queue. Quit discards them") && Contains("second.h5: 2 runs") &&
                               Contains("third.h5: 2 runs"));
    run.driven.drive([](ImGuiTestContext& c) { c.ItemClick(stay); });
    CHECK(run.engine().waiting().size() == 2);
    run.driven.drive([&](ImGuiTestContext& c) {
        CHECK(!run.driven.app().may_close());
        c.Yield(3);
        c.ItemClick("//Quit kvscope?/Quit", 0, ImGuiTestOpFlags_NoError);
    });
    CHECK(run.driven.has_ended());
    CHECK(run.engine().waiting().empty());
}

TEST_CASE("A second Quit while the question is open answers it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WaitingRun run;
    const bool is_by_key = GENERATE(true, false);
    bool may_close = false;
    run.driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_Q);
        c.Yield(2);
        CHECK(is_shown());
        if (is_by_key)
            c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_Q);
        else
            may_close = run.driven.app().may_close();  // the window's close button
    });
    CHECK((is_by_key ? run.driven.has_ended() : may_close));
    CHECK(run.engine().status().state == EngineStatus::State::cancelling);
}

TEST_CASE("Quit asks nothing if nothing runs or if the system ends the app") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    WaitingRun run;
    CHECK(run.driven.app().may_close(true));
    run.driven.drive([&](ImGuiTestContext& c) {
        c.Yield(3);
        CHECK(!is_shown());
    });
    run.let_it_end();
    CHECK(run.driven.app().may_close());
    run.driven.drive([&](ImGuiTestContext& c) {
        c.Yield(3);
        CHECK(!is_shown());
    });
}

}  // namespace kvscope::gui::testing

#endif
