#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "analysis/ranking.h"
#include "analysis/results/result.h"
#include "app/gui/view_data/ranked_rows.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/skip.h"
#include "tests/trace/sample_trace.h"

using namespace kvscope;
using namespace kvscope::gui;
using namespace kvscope::gui::testing;

namespace {

namespace sample = trace::sample;

/// The sample with a sentence every six tokens, in five scripts.
struct SentencesTrace {
    sample::TemporaryFolder folder;
    std::filesystem::path path = folder / "sentences.h5";

    explicit SentencesTrace(size_t n_runs = 6) {
        const sample::Options options;
        trace::PromptRecord prompt = sample::prompt(options);
        const std::vector<std::string> ends = {".", "。", "।", "؟", "!"};
        for (size_t i = 5; i < prompt.token_text.size(); i += 6) prompt.token_text[i] += ends[i / 6 % ends.size()];
        trace::Writer writer(path, sample::recipe, {.force = true, .generator = "rankings_test"});
        writer.write_model(sample::model(options));
        writer.write_prompt(0, prompt);
        const auto runs = sample::runs(options, prompt);
        for (size_t j = 0; j < n_runs; ++j) writer.write_run(0, static_cast<int>(j), runs[j]);
        writer.finish();
    }

    AppOptions options(const std::string& layout) const {
        AppOptions options;
        options.traces = {path};
        options.layout = layout;
        return options;
    }
};

const std::string rankings_window = DrivenApp::window_of("Rankings###rankings");

/// A single step: clicks a row of the table by its rank.
void click_row(DrivenApp& driven, size_t row) {
    driven.drive([&](ImGuiTestContext& c) {
        c.SetRef(rankings_window.c_str());
        const std::string item = "**/$$" + std::to_string(row) + "/##ranked row";
        const ImRect row_at = c.ItemInfo(item.c_str()).RectFull;
        c.MouseMoveToPos({row_at.Min.x + 40, row_at.GetCenter().y});  // the row may be wider than the view
        c.MouseClick();
    });
    driven.settle();
}

View& rankings_of(DrivenApp& driven) {
    for (const auto& open : driven.app().views())
        if (open->kind->name == "rankings") return *open->view;
    throw std::runtime_error("the view is not open");
}

analysis::Ranking ranking_of(const Session& session, const std::string& name) {
    const RankingRequest request = ranking_request(session, analysis::ranking_definition(name), std::nullopt);
    REQUIRE(request.document);
    return analysis::make_ranking(*request.definition, *request.document->reader(), request.options);
}

/// Drags over tokens in Prompt.
/// @param to_beside whether the button is released outside the text
/// @returns the highlighted span while the mouse was over the last token
Cursor drag_in_prompt(DrivenApp& driven, bool to_beside) {
    driven.start_by_palette("show prompt");
    driven.settle();
    Cursor during;
    driven.drive([&](ImGuiTestContext& c) {
        const ImRect text = c.WindowInfo("//prompt-1/text").Window->InnerRect;
        c.MouseTeleportToPos({text.Min.x + 12, text.Min.y + 40});
        c.Yield(2);
        c.MouseDown();
        c.MouseMoveToPos({text.Min.x + 90, text.Min.y + 40});
        c.Yield(2);
        during = driven.session().hover();
        if (to_beside) c.MouseTeleportToPos({text.Max.x + 30, text.Min.y - 60});
        c.Yield(2);
        c.MouseUp();
        c.Yield(2);
    });
    return during;
}

}  // namespace

TEST_CASE("a click on a score of prompts lists the prompts with their answers") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const sample::TemporaryFolder folder;
    const auto write = [&](const char* file, const std::vector<trace::ResultRow>& rows) {
        trace::Writer writer(folder / file, sample::recipe, {.generator = "rankings_test"});
        sample::write_parts(writer, {.n_questions = 3});
        if (!rows.empty()) writer.write_results(trace::schema::root::prompt_results, 0, rows);
        writer.finish();
    };
    write("computed.h5", {});
    auto rows = analysis::rows_of_prompts(trace::Reader(folder / "computed.h5"));
    for (trace::ResultRow& row : rows) {
        row.metric = "string_match_part";
        row.answers_json = "[\"the expected answer\"]";
        row.score = 1;
    }
    write("scored.h5", rows);
    AppOptions options;
    const bool is_alone = GENERATE(true, false);
    if (!is_alone) options.traces.push_back(folder / "computed.h5");
    options.traces.push_back(folder / "scored.h5");
    options.layout = "explore";
    DrivenApp driven(options);
    driven.settle();
    const auto set_focus_after_steps = [&](bool returns) {
        driven.drive([&](ImGuiTestContext& c) { c.EngineIO->ConfigRestoreFocusAfterTests = returns; });
    };
    set_focus_after_steps(false);
    driven.start_by_palette("show task scores");
    bool is_listed = false;
    for (float share = 0.25f; share < 0.9f && !is_listed; share += 0.05f) {
        driven.drive([&](ImGuiTestContext& c) {
            const ImRect plot = c.GetWindowByRef("//task_scores-1")->Rect();
            c.MouseMoveToPos({plot.GetCenter().x, plot.Min.y + share * plot.GetHeight()});
            c.MouseClick();
            c.Yield(10);
        });
        driven.settle();
        is_listed = driven.shown_text().find("all runs") != std::string::npos;
    }
    CHECK(is_listed);
    std::string text = driven.shown_text();
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    CHECK_THAT(text, Catch::Contains("{Samplesandprompts}only") && Catch::Contains("|prompts||sample,question2|54|"));
    set_focus_after_steps(true);
}

TEST_CASE("two steps show the sentences that A lost and B kept", "[rankings]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SentencesTrace files;
    DrivenApp driven(files.options("explore"));
    driven.settle();
    Session& session = driven.session();
    const auto [a, b] = session.compared();
    int steps = 0;
    driven.start_by_palette("rank sentences that a lost"), ++steps;
    click_row(driven, 0), ++steps;
    CHECK(steps == 2);

    const analysis::Ranking expected = ranking_of(session, "sentences");
    const Cursor cursor = session.cursor();
    CHECK(cursor.first_token == expected.of[0].subject.token);
    CHECK(cursor.last_token == expected.of[0].last_token);
    CHECK(cursor.last_token == cursor.first_token + 5);
    CHECK(cursor.run == a);
    CHECK(session.compared() == std::pair(a, b));
    const auto table = rankings_of(driven).table();
    REQUIRE(table);
    CHECK(table->rows.size() == 8);
    CHECK(table->title.find(session.attributes(a).label) != std::string::npos);
}

TEST_CASE("no tooltip covers a list opened by the palette", "[rankings]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SentencesTrace files;
    DrivenApp driven(files.options("explore"));
    driven.settle();
    driven.drive([](ImGuiTestContext& c) { c.MouseTeleportToPos({700, 5}); });  // on the menu bar, outside the list
    driven.start_by_palette("rank tokens");
    driven.drive([](ImGuiTestContext& c) {
        c.SleepNoSkip(1.0f, 1.0f / 30);  // tooltips appear after a delay
        for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
            if (window->Flags & ImGuiWindowFlags_Tooltip) CHECK_FALSE(window->WasActive);
    });
}

TEST_CASE("two steps, a drag over tokens and the palette, show each run's share of a range", "[rankings]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SentencesTrace files;
    DrivenApp driven(files.options("explore"));
    driven.settle();
    Session& session = driven.session();
    const Cursor during = drag_in_prompt(driven, false);
    const Cursor selected = session.cursor();
    REQUIRE(selected.has_tokens());
    CHECK(selected.last_token > selected.first_token);
    CHECK(during.first_token == selected.first_token);
    CHECK(during.last_token == selected.last_token);
    driven.start_by_palette("rank runs by the kept share");
    driven.settle();
    const auto table = rankings_of(driven).table();
    REQUIRE(table);
    CHECK(table->title ==
          fmt::format("Runs ranked by their kept share of tokens {} to {}", selected.first_token, selected.last_token));
    CHECK(table->rows.size() == session.visible_runs().size());
    click_row(driven, 0);
    CHECK(session.cursor().first_token == selected.first_token);
    CHECK(session.cursor().last_token == selected.last_token);
}

TEST_CASE("a drag over tokens that ends beside the text selects up to its end", "[rankings]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SentencesTrace files;
    DrivenApp driven(files.options("explore"));
    driven.settle();
    const Cursor during = drag_in_prompt(driven, true);
    const Cursor selected = driven.session().cursor();
    CHECK(selected.last_token > selected.first_token);
    CHECK(selected.first_token == during.first_token);
    CHECK(selected.last_token == during.last_token);
}

TEST_CASE("the ranking uses A and B of the session", "[rankings]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SentencesTrace files;
    DrivenApp driven(files.options("explore"));
    driven.settle();
    driven.start_by_palette("rank sentences that a lost");
    const auto [a, b] = driven.session().compared();
    driven.drive([](ImGuiTestContext& c) {
        c.SetRef(rankings_window.c_str());
        c.ItemClick("swap##rankings");
    });
    driven.settle();
    CHECK(driven.session().compared() == std::pair(b, a));
    click_row(driven, 0);
    CHECK(driven.session().cursor().run == b);
    CHECK(driven.session().cursor().first_token == ranking_of(driven.session(), "sentences").of[0].subject.token);
}

TEST_CASE("each ranking opens from the palette, and a row selects its object", "[rankings]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SentencesTrace files;
    DrivenApp driven(files.options("explore"));
    driven.settle();
    Session& session = driven.session();
    session.mark = ".";
    for (const auto& definition : analysis::ranking_definitions()) {
        CAPTURE(definition.name);
        if (definition.runs_are_settings) continue;  // run_task_test.cpp
        session.selection.set({});
        driven.start_by_palette("Rank: " + definition.title);
        const auto table = rankings_of(driven).table();
        REQUIRE(table);
        CHECK(table->name == definition.name);
        click_row(driven, 1);
        const analysis::RankedSubject of = ranking_of(session, definition.name).of.at(1);
        const Cursor cursor = session.cursor();
        CHECK(cursor.layer == of.subject.layer);
        CHECK(cursor.kv_head == of.subject.head);
        CHECK(cursor.first_token == of.subject.token);
        CHECK(cursor.last_token == of.last_token);
        CHECK(cursor.step == of.subject.step);
        const Document& document = *session.focus();
        if (of.subject.run >= 0) CHECK(document.place_of(0, cursor.run.run) == of.subject.run);
    }
}

TEST_CASE("a click on a recorded run in the ranking of samples selects it", "[rankings]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SentencesTrace files;
    DrivenApp driven(files.options("explore"));
    driven.settle();
    Session& session = driven.session();
    driven.start_by_palette("Rank: " + analysis::ranking_definition("samples").title);
    driven.settle();
    for (const size_t row : {size_t{1}, size_t{0}}) {
        click_row(driven, row);
        const analysis::RankedSubject of = ranking_of(session, "samples").of.at(row);
        CHECK(of.prompt == 0);
        CHECK(session.cursor().run == session.focus()->key_of(0, of.subject.run));
    }
    const std::string text = driven.shown_text();
    CHECK_THAT(text, Catch::Contains("Expected"));
    CHECK_THAT(text, !Catch::Contains("Run this sample"));
}

TEST_CASE("a ranking can be sorted by headings and filtered", "[rankings]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SentencesTrace files;
    DrivenApp driven(files.options("explore"));
    driven.settle();
    driven.start_by_palette("Rank: Heads that differ most");
    const auto column = [&](size_t i) {
        std::vector<int64_t> values;
        const auto table = rankings_of(driven).table();
        for (const auto& row : table.value().rows) values.push_back(std::get<int64_t>(row.cells[i]));
        return values;
    };
    const auto ranked = column(0);
    const auto click_heading = [&] {
        driven.drive([](ImGuiTestContext& c) {
            c.SetRef(rankings_window.c_str());
            c.ItemClick("**/Layer");
        });
        driven.settle();
    };
    click_heading();
    auto layers = column(0);
    CHECK(std::is_sorted(layers.rbegin(), layers.rend()));
    click_heading();
    layers = column(0);
    CHECK(std::is_sorted(layers.begin(), layers.end()));
    click_heading();
    CHECK(column(0) == ranked);

    driven.start_by_palette("Rank: Tokens that runs disagree about");
    const auto filter = [&](const char* text) {
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef(rankings_window.c_str());
            c.ItemInputValue("##filter of ranking", text);
        });
        driven.settle();
        return rankings_of(driven).table()->rows.size();
    };
    CHECK(filter("W31") == 1);
    CHECK(filter("no such text") == 0);
    driven.start_by_palette("Rank: Heads that differ most");  // a filter does not hide another ranking
    CHECK(column(0) == ranked);
}

TEST_CASE("rows of selected objects differ from other rows", "[rankings]") {
    const SentencesTrace files;
    Tasks tasks([] {});
    Session session(tasks);
    Document& document = session.open(files.path);
    const auto rows_of = [&](const char* name) {
        RankedRows rows;
        rows.made = ranking_of(session, name);
        rows.document = document.id();
        rows.runs = document.runs(0);
        return rows;
    };
    const auto lit = [&](const RankedRows& rows) {
        std::vector<size_t> found;
        for (size_t row = 0; row < rows.made.of.size(); ++row)
            if (is_cursor_at_row(session.cursor(), rows, row)) found.push_back(row);
        return found;
    };
    const RankedRows sentences = rows_of("sentences"), heads = rows_of("heads"), steps = rows_of("steps");
    session.selection.select_run(document.key_of(0, 2));
    CHECK(lit(sentences).empty());
    CHECK(lit(heads).empty());
    session.selection.select_token(13);
    REQUIRE(lit(sentences).size() == 1);
    CHECK(sentences.made.of[lit(sentences)[0]].subject.token == 12);
    session.selection.select_token(19, true);
    CHECK(lit(sentences).size() == 2);
    session.selection.select_head(1, 1);
    REQUIRE(lit(heads).size() == 1);
    CHECK(heads.made.of[lit(heads)[0]].subject == analysis::Subject{.layer = 1, .head = 1});
    session.selection.select_step(3);
    REQUIRE(lit(steps).size() == 1);
    CHECK(steps.made.of[lit(steps)[0]].subject.run == 2);
}

TEST_CASE("a ranking without data shows the reason", "[rankings]") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const auto shown = [](size_t n_runs, const char* ranking) {  // on one line
        const SentencesTrace files(n_runs);
        DrivenApp driven(files.options("explore"));
        driven.settle();
        driven.start_by_palette(ranking);
        std::string text = driven.shown_text();
        std::replace(text.begin(), text.end(), '\n', ' ');
        return text;
    };
    CHECK_THAT(shown(1, "rank sentences that a lost"), Catch::Contains("Choose two runs as A and B"));
    CHECK_THAT(shown(1, "Rank: Steps that diverge most"), Catch::Contains("No compressed run is shown"));
    CHECK_THAT(shown(2, "Rank: Tokens that runs disagree about"), Catch::Contains("at least two runs"));
}
