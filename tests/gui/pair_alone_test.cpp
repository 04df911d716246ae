#include <imgui_internal.h>

#include <catch2/catch.hpp>

#include "analysis/drawing/color_map.h"
#include "app/gui/figure/figure_job.h"
#include "app/gui/inspector/inspected_token.h"
#include "app/gui/layout/layouts.h"
#include "app/gui/session/session_state.h"
#include "app/gui/view_data/runs_alone.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

/// Clicks A or B next to a run.
void choose(DrivenApp& driven, const RunKey& run, const char* letter) {
    const std::string label = "//runs-1/**/" + run.text() + "/" + letter;
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick(label.c_str()); });
}

size_t n_shown(const Session& session) { return session.visible_runs(true).size(); }

}  // namespace

TEST_CASE("A and B alone takes three clicks, and the visible runs are restored when it ends") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    Session& session = driven.session();
    const auto runs = session.all_runs();
    session.set_visible(runs.at(1), false);
    const auto before = session.visible_runs(true);
    const auto place_of_list = [&] {
        driven.settle();
        float y = 0;
        driven.drive([&](ImGuiTestContext& c) {
            y = c.ItemInfo(("//runs-1/**/" + runs.at(2).text() + "/A").c_str()).RectFull.Min.y;
        });
        return y;
    };
    const float list = place_of_list();
    driven.drive(
        [&](ImGuiTestContext& c) { CHECK(c.ItemInfo("//runs-1/A and B alone").ItemFlags & ImGuiItemFlags_Disabled); });
    choose(driven, runs.at(2), "A");
    choose(driven, runs.at(3), "B");
    CHECK(place_of_list() == list);  // the list does not move under the mouse
    CHECK(session.visible_runs(true) == before);
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//runs-1/A and B alone"); });
    driven.settle();
    CHECK(session.visible_runs(true) == std::vector{runs.at(2), runs.at(3)});
    // B may change meanwhile, and undo reverts all changes.
    choose(driven, runs.at(4), "B");
    driven.settle();
    CHECK(session.visible_runs(true) == std::vector{runs.at(2), runs.at(4)});
    driven.start_by_palette("undo");
    driven.settle();
    CHECK(session.visible_runs(true) == std::vector{runs.at(2), runs.at(3)});
    driven.start_by_palette("only a and b");
    driven.settle();
    CHECK(session.visible_runs(true) == before);
    driven.start_by_palette("only a and b");
    CHECK(n_shown(session) == 2);
    show_all_runs(session);
    CHECK(n_shown(session) == runs.size() - 1);  // one failed
    CHECK_FALSE(session.pair.alone);
}

TEST_CASE("A and B alone ends when A is no longer chosen, and does not start again with the next pair") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    Session& session = driven.session();
    const auto runs = session.all_runs();
    const size_t n_all = n_shown(session);
    choose(driven, runs.at(2), "A");
    choose(driven, runs.at(3), "B");
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//runs-1/A and B alone"); });
    CHECK(n_shown(session) == 2);
    choose(driven, runs.at(2), "A");  // a second click removes the choice
    CHECK(n_shown(session) == n_all);
    CHECK_FALSE(session.pair.alone);
    choose(driven, runs.at(4), "A");
    CHECK(session.pair.is_complete());
    CHECK(n_shown(session) == n_all);
}

TEST_CASE("A and B alone is on in the layout Compare and off in Explore") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(explore(sample));
    driven.settle();
    Session& session = driven.session();
    const auto runs = session.all_runs();
    const size_t all = n_shown(session);
    driven.start_by_palette("compare");
    driven.settle();
    CHECK(n_shown(session) == all);  // A and B are not chosen
    choose(driven, runs.at(2), "A");
    choose(driven, runs.at(3), "B");
    driven.settle();
    CHECK(n_shown(session) == 2);
    CHECK(session.compared() == std::pair(runs.at(2), runs.at(3)));
    driven.start_by_palette("explore");
    driven.settle();
    CHECK(n_shown(session) == all);
}

TEST_CASE("A and B alone is saved with A and B") {
    const SampleTrace sample;
    Tasks tasks([] {});
    Session session(tasks);
    session.open(sample.path);
    const auto runs = session.all_runs();
    session.pair.a = runs.at(2);
    session.pair.b = runs.at(3);
    session.pair.alone = true;
    const nlohmann::json state = session_state(session, {sample.path});
    Session other(tasks);
    CHECK(restore_session(other, state, sample.folder.path()).empty());
    CHECK(other.pair.is_alone());
    // Also saved with the trace for the next session.
    const nlohmann::json view = trace_display_state(session, *session.documents().front());
    Session third(tasks);
    third.open(sample.path);
    third.pair = {};
    restore_trace_display(third, *third.documents().front(), view);
    CHECK(third.pair.is_alone());
    CHECK(other.visible_runs(true).size() == 2);
    other.pair.forget(*other.pair.b);
    CHECK(other.visible_runs(true).size() > 2);
    CHECK_FALSE(other.pair.alone);
}

TEST_CASE("while A and B alternate, all views of one run show the visible run") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options = explore(sample);
    options.select = "token=3,run=snapkv 24";
    DrivenApp driven(options);
    driven.settle();
    Session& session = driven.session();
    const auto runs = session.all_runs();
    const RunKey selected = session.cursor().run;
    session.pair.a = runs.at(1);  // snapkv 16
    session.pair.b = runs.at(3);  // aperturekv 20
    for (const RunKey& shown : {runs.at(1), runs.at(3)}) {
        driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_Space); });
        driven.settle();
        CAPTURE(session.look(shown).label);
        CHECK(session.visible_runs() == std::vector{shown});
        CHECK(find_inspected_token(session).run == shown);
        const std::string said = driven.shown_text();
        const std::string label = session.look(shown).label;
        CHECK_THAT(said, Catch::Contains("token 3 " + label + ": "));         // Prompt
        CHECK_THAT(said, Catch::Contains("\n" + label + " from the trace"));  // What-if
    }
    driven.drive([](ImGuiTestContext& c) { c.KeyPress(ImGuiKey_Escape); });
    driven.settle();
    CHECK(session.cursor().run == selected);
    CHECK(find_inspected_token(session).run == selected);
    CHECK_THAT(driven.shown_text(), Catch::Contains("\nsnapkv 24 from the trace"));
}

TEST_CASE("one step shows A − B in Prompt, and its figure and numbers are the difference") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "prompt"));
    driven.settle();
    Session& session = driven.session();
    const auto runs = session.all_runs();
    session.pair.a = runs.at(1);  // snapkv 16
    session.pair.b = runs.at(3);  // aperturekv 20
    driven.drive([](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("Prompt###prompt").c_str());
        c.ComboClick("##prompt colour/A − B");
    });
    driven.settle();
    CHECK_THAT(driven.shown_text(), Catch::Contains("A in more"));
    View& view = *driven.app().views().at(0)->view;
    const auto request = view.figure(session);
    REQUIRE(request);
    CHECK(request->difference);
    const FigureJob job(session, *request);
    const analysis::Figure figure = job.figure();
    const analysis::Table numbers = job.numbers();
    CHECK(figure.panels.front().title == "snapkv 16 − aperturekv 20");
    CHECK(numbers.name == "prompt-difference");
    CHECK(!numbers.rows.empty());
    // Words on the map differ in color from the cells below them.
    const auto& map = std::get<analysis::HeatMap>(figure.panels.front().shapes.front());
    size_t n_words = 0;
    for (const auto& shape : figure.panels.front().shapes) {
        const auto* word = std::get_if<analysis::TextLabel>(&shape);
        if (!word) continue;
        const float value = map.values.at(static_cast<size_t>(word->y) * map.columns + static_cast<size_t>(word->x));
        const auto& scale = figure.color_scales.at(map.color_scale);
        const auto ground =
            analysis::color_at(scale.map, analysis::position_on_scale(scale, static_cast<double>(value)));
        CHECK(word->color == analysis::ink_on(ground));
        ++n_words;
    }
    CHECK(n_words > 10);
    // Without A and B, the view says what to do.
    nlohmann::json state;
    view.save(state);
    CHECK(state["difference"] == true);
    for (const RunKey& run : runs) session.set_visible(run, false);
    session.pair = {};
    driven.settle();
    CHECK_THAT(driven.shown_text(), Catch::Contains("choose two runs of this prompt as A and B"));
    CHECK_FALSE(view.figure(session).has_value());
}

TEST_CASE("three steps show the memory at a chosen length and in a chosen model") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "cost"));
    driven.settle();
    View& cost = *driven.app().views().at(0)->view;
    const auto column = [&](const std::string& name) {
        const auto table = cost.table();
        REQUIRE(table);
        for (size_t i = 0; i < table->columns.size(); ++i)
            if (table->columns[i].name == name) return std::optional(i);
        return std::optional<size_t>();
    };
    CHECK(column("compression"));
    CHECK_FALSE(column("bytes_at"));
    driven.drive([](ImGuiTestContext& c) {
        c.SetRef(DrivenApp::window_of("Cost###cost").c_str());
        c.ItemClick("memory at");
        c.ItemInputValue("tokens of##memory", 32768);
        c.ComboClick("##memory model/Llama-3.1-8B##Llama-3.1-8B");
    });
    driven.settle();
    REQUIRE(column("bytes_at"));
    const auto table = cost.table();
    CHECK(table->columns[*column("bytes_at")].title == "At 32,768");
    CHECK(std::get<int64_t>(table->rows[0].cells[*column("bytes_at")]) == int64_t{4} * 1024 * 1024 * 1024);
    // The setting is saved with the view.
    nlohmann::json state;
    cost.save(state);
    CHECK(state["memory"]["model"] == "Llama-3.1-8B");
    CHECK(state["memory"]["tokens"] == 32768);
}

TEST_CASE("Cost says why a run with every token has no attention kept and no recall") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "cost"));
    driven.settle();
    const auto has_tooltip = [&](const char* row) {
        bool is_there = false;
        driven.drive([&](ImGuiTestContext& c) {
            c.MouseMove(row);
            c.Yield(3);
            const ImGuiWindow* tooltip = c.GetWindowByRef("//##Tooltip_00");
            is_there = tooltip && tooltip->Active && !tooltip->Hidden;
        });
        return is_there;
    };
    CHECK(has_tooltip("//cost-1/**/think##cost row"));
    CHECK_FALSE(has_tooltip("//cost-1/**/snapkv 16##cost row"));
}

TEST_CASE("Answers can ask a visible run although another run is selected") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(alone(sample, "answers"));
    if (!driven.app().engine()) KVSCOPE_SKIP("built without the engine");
    driven.settle();
    Session& session = driven.session();
    const auto runs = session.visible_runs();
    REQUIRE(runs.size() >= 3);
    const auto is_offered = [&](const RunKey& run) {
        return driven.shown_text().find("ask the cache of " + session.look(run).label) != std::string::npos;
    };
    session.selection.select_run(runs[2]);
    driven.settle();
    CHECK(is_offered(runs[2]));
    session.set_visible(runs[2], false);
    driven.settle();
    CHECK(!is_offered(runs[2]));
    CHECK(driven.shown_text().find("ask the cache of ") != std::string::npos);
}

}  // namespace kvscope::gui::testing
