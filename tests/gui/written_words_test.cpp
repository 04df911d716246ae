// Tests of texts and first pictures that a new user sees.
#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <utility>

#include "analysis/measures/wrong_answer.h"
#include "app/gui/session/renaming.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/policy_runs.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;
namespace sample = trace::sample;
using Catch::Matchers::Contains;

/// Writes a trace without prompts: task results, or rows of results.
fs::path write_results_only(const fs::path& path, const std::string& table) {
    trace::Writer writer(path, sample::recipe, {.force = true, .generator = "written_words_test"});
    trace::ModelRecord model = sample::model({});
    model.spectrum_q = model.spectrum_k = model.spectrum_v = {};
    writer.write_model(model);
    auto rows = sample::results();
    rows[1].cause = analysis::cause::ranked_low;
    rows[1].cause_layer = 17;
    rows[1].cause_head = 2;
    rows[1].cause_gap = 23;
    writer.write_results(table, 0, rows);
    writer.finish();
    return path;
}

AppOptions alone(const fs::path& trace, const std::string& view) {
    AppOptions options = explore(trace);
    options.view = view;
    return options;
}

const ImGuiWindow* shown_tooltip() {
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
        if (window->Active && !window->Hidden && (window->Flags & ImGuiWindowFlags_Tooltip) != 0) return window;
    return nullptr;
}

size_t count(const std::string& text, const std::string& part) {
    size_t n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
}

}  // namespace

TEST_CASE("a run's long label does not make the tooltip of a token high") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace files;
    DrivenApp driven(explore(files));
    driven.settle();
    Session& session = driven.session();
    const auto height = [&] {
        float highest = 0;
        driven.drive([&](ImGuiTestContext& c) {
            const ImRect text = c.WindowInfo("//prompt-1/text").Window->InnerRect;
            for (float y = text.Min.y + 30; y < text.Max.y && highest == 0; y += 12) {
                c.MouseTeleportToPos({text.Min.x + 60, y});
                c.Yield(6);
                if (const ImGuiWindow* tooltip = shown_tooltip()) highest = tooltip->Size.y;
            }
        });
        return highest;
    };
    const float before = height();
    REQUIRE(before > 0);
    for (const RunKey& run : session.all_runs())
        set_run_label(session, run,
                      session.look(run).label + ":merging=cam,window=8,pooling=max,kernel=5,recent=16,alpha=0.25",
                      false);
    driven.settle();
    const auto n_runs = static_cast<float>(session.all_runs().size());
    CHECK(height() < before + (n_runs + 2) * 2 * ImGui::GetTextLineHeightWithSpacing());
}

TEST_CASE("Report opens at a figure of a trace without prompts, and says why it cannot draw another") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const sample::TemporaryFolder folder;
    const std::string table = GENERATE("niah", "prompts");
    CAPTURE(table);
    DrivenApp driven(alone(write_results_only(folder / "rows.h5", table), "report"));
    driven.settle();
    View& report = *driven.app().views().at(0)->view;
    REQUIRE(report.figure(driven.session()));
    CHECK(report.figure(driven.session())->figure == "results-table");
    const std::string text = driven.shown_text();
    CHECK_THAT(text, !Contains("Open a trace"));
    CHECK_THAT(text, !Contains("coverage, kl_mean"));  // a default of another figure
    report.load({{"figure", "retention"}});
    driven.settle();
    CHECK_FALSE(report.figure(driven.session()));
    CHECK_THAT(driven.shown_text(), Contains("prompt"));
}

TEST_CASE("Rankings opens with the samples of a trace without prompts") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const sample::TemporaryFolder folder;
    DrivenApp driven(alone(write_results_only(folder / "eval.h5", "niah"), "rankings"));
    driven.settle();
    CHECK_THAT(driven.shown_text(), Contains("needle-100-a") && !Contains("Choose two runs"));
}

TEST_CASE("by mouse: a click on a sample shows the cause of its wrong answer") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const sample::TemporaryFolder folder;
    DrivenApp driven(alone(write_results_only(folder / "eval.h5", "niah"), "rankings"));
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("Rankings###rankings").c_str());
        c.ItemInputValue("**/##filter of ranking", "needle-100-a");
        c.Yield(4);
    });
    driven.settle();
    bool is_shown = false;
    for (int row = 0; row < 16 && !is_shown; ++row) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef(DrivenApp::window_of("Rankings###rankings").c_str());
            const std::string item = "**/$$" + std::to_string(row) + "/##ranked row";
            if (!c.ItemExists(item.c_str())) return;
            const ImRect at = c.ItemInfo(item.c_str()).RectFull;
            c.MouseMoveToPos({at.Min.x + 40, at.GetCenter().y});
            c.MouseClick();
            c.Yield(2);
        });
        driven.settle();
        is_shown = driven.shown_text().find("dropped a token of the answer") != std::string::npos;
    }
    CHECK(is_shown);
}

TEST_CASE("the log names the rows of an opened trace") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const sample::TemporaryFolder folder;
    DrivenApp driven(alone(write_results_only(folder / "eval.h5", "niah"), "log"));
    driven.settle();
    CHECK_THAT(driven.shown_text(), Contains("eval.h5 opened: 16 rows of niah"));
}

TEST_CASE("the tooltip of a score says what a click does") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const sample::TemporaryFolder folder;
    DrivenApp driven(alone(write_results_only(folder / "eval.h5", "niah"), "task_scores"));
    driven.settle();
    float n_lines = 0;
    driven.drive([&](ImGuiTestContext& c) {
        const ImRect plot = c.GetWindowByRef("//task_scores-1")->Rect();
        for (float share = 0.25f; share < 0.9f && n_lines == 0; share += 0.05f) {
            c.MouseTeleportToPos({plot.GetCenter().x, plot.Min.y + share * plot.GetHeight()});
            c.Yield(3);
            const ImGuiWindow* tooltip = shown_tooltip();
            if (tooltip) n_lines = (tooltip->Size.y - 2 * tooltip->WindowPadding.y) / ImGui::GetTextLineHeight();
        }
    });
    CHECK(n_lines == Approx(4).margin(0.3));  // policy, budget, score, hint
}

TEST_CASE("What-if keeps the headings of its numbers") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const auto stored = h2o_and_snapkv();
    DrivenApp driven(explore(stored.path()));
    driven.settle();
    driven.session().selection.select_run(driven.session().all_runs().at(2));
    const float scale = GENERATE(1.0f, 1.6f);  // at the larger scale, not all columns fit
    CAPTURE(scale);
    driven.app().set_scale(scale);
    driven.drive([](ImGuiTestContext& c) { c.WindowFocus("//What-if###what_if-1"); });
    driven.settle();
    const auto headings = [&] {
        const std::string text = driven.shown_text();
        INFO(text);
        CHECK_THAT(text, !Contains(" ms"));
        CHECK(count(text, "recorded") >= 1);  // below the slider; in the table only if there is room
        CHECK_THAT(text, Contains("now") && Contains("change"));
    };
    headings();
    driven.drive([](ImGuiTestContext& c) {
        c.SetRef("//What-if###what_if-1");
        c.ItemInputValue("##budget number", 12);
    });
    driven.settle();
    headings();
    driven.app().set_scale(1);
    driven.settle();
}

TEST_CASE("an entry at the cut-off has a margin of 0 %") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace files;
    AppOptions options = explore(files);
    options.select = "token=3,layer=1,run=snapkv 16";
    options.view = "inspector";
    DrivenApp driven(options);
    driven.settle();
    const std::string text = driven.shown_text();
    const size_t table = text.find("margin");
    REQUIRE(table != std::string::npos);
    CHECK_THAT(text.substr(table), Contains(" 0 %") && !Contains("the cut-off"));
}

TEST_CASE("prompts with one name are numbered in Runs") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const sample::TemporaryFolder folder;
    {
        const sample::Options sizes;
        trace::Writer writer(folder / "twice.h5", sample::recipe, {.force = true, .generator = "written_words_test"});
        writer.write_model(sample::model(sizes));
        for (const int number : {0, 1}) {
            trace::PromptRecord prompt = sample::prompt(sizes);
            prompt.question = "Which city?";
            writer.write_prompt(number, prompt);
            int place = 0;
            for (const auto& run : sample::runs(sizes, prompt)) writer.write_run(number, place++, run);
        }
        writer.finish();
    }
    DrivenApp driven(alone(folder / "twice.h5", "runs"));
    driven.settle();
    CHECK_THAT(driven.shown_text(), Contains("1. Which city?") && Contains("2. Which city?"));
}

TEST_CASE("the command that alternates between A and B has this name") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace files;
    DrivenApp driven(explore(files));
    driven.settle();
    Session& session = driven.session();
    session.pair.a = session.documents()[0]->key_of(0, 1);
    session.pair.b = session.documents()[0]->key_of(0, 2);
    driven.start_by_palette("alternate between a and b");
    CHECK(session.pair.flicker.has_value());
}

}  // namespace kvscope::gui::testing
