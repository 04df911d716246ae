// Tests of runs that wait in the queue and of continuing a cancelled run.
#ifdef KVSCOPE_WITH_ENGINE

#include <imgui_internal.h>

#include <catch2/catch.hpp>

#include "tests/gui/driven_form.h"
#include "tests/gui/held_steps.h"
#include "tests/gui/session_with_engine.h"
#include "tests/skip.h"
#include "trace/reader.h"

namespace kvscope::gui::testing {
namespace {

/// A run that pauses in the middle of its answer.
RunRequest held_request(HeldSession& held) {
    auto request = held.gui.request({held.echokv()}, "16");
    request.options.n_new = 12;
    request.options.ignore_eos = true;
    request.output = held.gui.folder / "first.h5";
    return request;
}

}  // namespace

TEST_CASE("a queued run can be removed, and makes the same trace as alone") {
    HeldSession held("queue");
    SessionWithEngine& gui = held.gui;
    held.steps.allow(2);
    gui.engine->run(held_request(held));
    held.wait_after(2, [&] { return !gui.engine->partial_answers().empty(); });
    auto second = gui.request({"snapkv:window=8", "h2o"}, "16");
    second.output = gui.folder / "second.h5";
    auto third = second;
    third.output = gui.folder / "third.h5";
    const uint64_t job = gui.engine->run(second);
    gui.engine->run(third);
    auto waiting = gui.engine->waiting();
    REQUIRE(waiting.size() == 2);
    CHECK(waiting[0].what == "second.h5: 3 runs");
    CHECK(waiting[1].what == "third.h5: 3 runs");
    CHECK(gui.engine->has_job(job));
    CHECK(gui.engine->is_taken(second.output));
    gui.engine->drop(waiting[1].number);
    waiting = gui.engine->waiting();
    REQUIRE(waiting.size() == 1);
    CHECK(waiting[0].number == job);
    held.cancel();  // cancels only the run in progress
    CHECK(gui.errors.empty());
    CHECK(gui.engine->waiting().empty());
    CHECK(fs::exists(second.output));
    CHECK_FALSE(fs::exists(third.output));

    SessionWithEngine alone("queue-alone");
    auto request = alone.request({"snapkv:window=8", "h2o"}, "16");
    alone.engine->run(request);
    alone.until_idle();
    const trace::Reader queued(second.output), expected(request.output);
    REQUIRE(queued.n_runs(0) == expected.n_runs(0));
    for (int run = 0; run < queued.n_runs(0); ++run) {
        CHECK(queued.run_record(0, run).output_ids == expected.run_record(0, run).output_ids);
        CHECK(queued.kept(0, run)->indices == expected.kept(0, run)->indices);
    }
}

TEST_CASE("Continue resumes the cancelled run and is then unavailable") {
    HeldSession held("continue");
    SessionWithEngine& gui = held.gui;
    CHECK(!gui.engine->stopped_run());
    CHECK(gui.engine->continue_stopped_run() == 0);
    const RunRequest request = held_request(held);
    held.steps.allow(2);
    gui.engine->run(request);
    held.wait_after(2, [&] { return !gui.engine->partial_answers().empty(); });
    held.cancel();
    REQUIRE(gui.engine->stopped_run());
    CHECK(gui.engine->stopped_run()->what == "first.h5: 2 runs");
    CHECK_THAT(gui.engine->stopped_run()->rest, Catch::Contains("Nothing is repeated"));
    CHECK_THAT(gui.engine->stopped_run()->rest, Catch::Contains(" of 12 tokens"));
    REQUIRE_FALSE(fs::exists(request.output));
    CHECK(gui.engine->continue_stopped_run() != 0);
    CHECK(!gui.engine->stopped_run());
    gui.until_idle();
    CHECK(gui.errors.empty());
    REQUIRE(fs::exists(request.output));
    CHECK(trace::Reader(request.output).complete());
}

TEST_CASE("the same request continues a paused run; another request for its file continues from the disk") {
    HeldSession held("continue-by-run");
    SessionWithEngine& gui = held.gui;
    RunRequest request = held_request(held);
    const bool is_same = GENERATE(false, true);
    CAPTURE(is_same);
    held.steps.allow(2);
    const uint64_t job = gui.engine->run(request);
    held.wait_after(2, [&] { return !gui.engine->partial_answers().empty(); });
    held.cancel();
    REQUIRE(gui.engine->stopped_run());
    CHECK(!gui.engine->is_taken(request.output));
    request.model.clear();  // as in the form after its model was loaded
    if (!is_same) request.policies.emplace_back("h2o");
    CHECK((gui.engine->run(request) == job) == is_same);
    CHECK(!gui.engine->stopped_run());
    gui.until_idle();
    for (const auto& error : gui.errors) UNSCOPED_INFO(error);
    REQUIRE(gui.errors.empty());
    CHECK(trace::Reader(request.output).n_runs(0) == (is_same ? 2 : 3));
}

TEST_CASE("Continue after a cancelled prefill repeats no layer and gives the same trace") {
    SessionWithEngine gui("continue-prefill");
    auto request = gui.request({"snapkv", "h2o", "kvslimmer", "dapq"}, "64");
    request.model.clear();  // the default model, whose layers take long enough to be counted
    for (int i = 0; i < 6; ++i) request.context += " " + text;
    int n_pauses = 0;
    double share_at_pause = 0;
    gui.engine->run(request);
    for (int i = 0; i < patience && gui.engine->status().busy(); ++i) {
        gui.frame();
        const EngineStatus status = gui.engine->status();
        if (status.phase == "prefill" && status.state == EngineStatus::State::running) {
            CHECK(status.share >= share_at_pause);
            if (n_pauses < 3 && status.share > share_at_pause) {
                gui.engine->cancel();
                gui.until_idle();
                REQUIRE(gui.engine->stopped_run());
                CHECK_THAT(gui.engine->stopped_run()->rest, Catch::Contains("prefill: "));
                share_at_pause = status.share;
                ++n_pauses;
                REQUIRE(gui.engine->continue_stopped_run() != 0);
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    CHECK(n_pauses == 3);
    auto whole = request;
    whole.output = gui.folder / "whole.h5";
    gui.engine->run(whole);
    gui.until_idle();
    REQUIRE(gui.errors.empty());
    const trace::Reader paused(request.output), expected(whole.output);
    REQUIRE(paused.n_runs(0) == expected.n_runs(0));
    for (int run = 0; run < paused.n_runs(0); ++run) {
        const auto one = paused.run_record(0, run), other = expected.run_record(0, run);
        CHECK(one.output_ids == other.output_ids);
        CHECK(one.kept_indices == other.kept_indices);
        CHECK(one.step_kl == other.step_kl);
    }
}

TEST_CASE("by mouse: Run queues a second run, × removes it, Cancel pauses the first, Continue resumes it") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    AppOptions options;
    options.view = "run";
    HeldWindow window(options);
    DrivenApp& driven = window.driven;
    driven.app().dismiss_start();
    driven.settle();
    RunForm form = small_form(window.folder / "first.h5");
    for (PolicyRow& row : form.rows) {
        row.ticked = row.spec.definition->name == "echokv";
        if (!row.ticked) continue;
        row.spec.values.set("maps", window.maps.path());
        row.spec.values.set("recent", "9");
    }
    form.request.options.n_new = 12;
    form.request.options.ignore_eos = true;
    View& view = *driven.app().views()[0]->view;
    const auto fill = [&](const char* output) {
        form.request.output = window.folder / output;
        view.load(form.to_json());
        driven.settle();
    };
    const auto click = [&](const char* button) {
        driven.drive([&](ImGuiTestContext& c) { c.ItemClick(button); });
        driven.settle();
    };
    const auto is_dead = [&](const char* button) {
        bool dead = false;
        driven.drive(
            [&](ImGuiTestContext& c) { dead = (c.ItemInfo(button).ItemFlags & ImGuiItemFlags_Disabled) != 0; });
        return dead;
    };
    window.steps.allow(2);
    fill("first.h5");
    click("//run-1/Run");
    window.wait_after(2);
    CHECK(is_dead("//run-1/Run"));  // this run is in progress
    fill("second.h5");
    CHECK(!is_dead("//run-1/Run"));
    click("//run-1/Run");
    CHECK(is_dead("//run-1/Run"));
    CHECK(driven.shown_text().find("second.h5: 2 runs") != std::string::npos);
    REQUIRE(window.engine().waiting().size() == 1);
    CHECK(!driven.app().may_close());  // the question lists the queue
    driven.settle();
    CHECK(driven.shown_text().find("1 job waits in the queue") != std::string::npos);
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//Quit kvscope?/Stay"); });
    click("//run-1/**/×");
    CHECK(window.engine().waiting().empty());
    click("//run-1/Cancel##run");
    window.let_it_end();
    driven.settle();
    CHECK(driven.shown_text().find("cancelled: first.h5: 2 runs") != std::string::npos);
    REQUIRE_FALSE(fs::exists(window.folder / "first.h5"));
    click("//run-1/**/Continue##run");
    REQUIRE(driven.draw_until([&] { return !window.engine().status().busy(); }, patience));
    driven.settle();
    CHECK(fs::exists(window.folder / "first.h5"));
    CHECK_FALSE(fs::exists(window.folder / "second.h5"));
}

}  // namespace kvscope::gui::testing

#endif
