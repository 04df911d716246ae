#include "app/gui/view_data/comparison.h"

#include <catch2/catch.hpp>

#include "app/gui/figure/export_dialog.h"
#include "app/gui/figure/figure_job.h"
#include "app/gui/view_data/answer_comparison.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/run_places.h"
#include "tests/gui/two_traces.h"
#include "tests/skip.h"

namespace kvscope::gui::testing {
namespace {

View& view_of(DrivenApp& driven) { return *driven.app().views().at(0)->view; }

size_t column_of(const analysis::Table& table, const std::string& name) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].name == name) return i;
    }
    FAIL("there is no column " << name);
    return 0;
}

const analysis::Row& row_of(const analysis::Table& table, const std::string& trace, const std::string& label) {
    const size_t at_label = column_of(table, "label");
    for (const auto& row : table.rows) {
        const bool is_of_trace =
            trace.empty() || std::get<kvscope::SharedText>(row.cells[column_of(table, "trace")]).string() == trace;
        if (is_of_trace && std::get<kvscope::SharedText>(row.cells[at_label]).string() == label) return row;
    }
    FAIL("there is no row " << trace << " " << label);
    return table.rows.front();
}

double real(const analysis::Cell& cell) { return std::get<double>(cell); }
bool is_empty(const analysis::Cell& cell) { return std::holds_alternative<std::monostate>(cell); }

}  // namespace

TEST_CASE("runs of a second trace are compared with their pairs in the first, and the user's choice is saved") {
    const TwoTraces files;
    Tasks tasks([] {});
    Session session(tasks);
    session.open(files.first);
    Comparison comparison;
    CHECK(find_compared_runs(session, comparison, AutomaticComparison::traces, false).kind == Comparison::Kind::none);
    const int second = session.open(files.second).id();
    const Compared compared = find_compared_runs(session, comparison, AutomaticComparison::traces, false);
    CHECK(compared.title == "[2] two.h5 − [1] one.h5");
    CHECK(compared.pairs.size() == 6);  // full and five others; one run failed
    for (const ComparedRuns& pair : compared.pairs) {
        CHECK(pair.a.document == second);
        CHECK(pair.label == session.look(pair.a).run);
    }
    CHECK(find_compared_runs(session, comparison, AutomaticComparison::none, false).kind == Comparison::Kind::none);
    // The choice and the table agree, whichever runs are visible.
    for (const RunKey& key : session.all_runs())
        if (key.document == second) session.set_visible(key, false);
    for (const bool shown_only : {true, false})
        CHECK(find_compared_runs(session, Comparison{}, AutomaticComparison::traces, shown_only).title ==
              "[2] two.h5 − [1] one.h5");
    for (const RunKey& key : session.all_runs()) session.set_visible(key, true);

    comparison = {Comparison::Kind::traces, "one.h5", "two.h5"};
    nlohmann::json state;
    write_comparison_to_json(state, comparison);
    Comparison read;
    read_comparison_from_json(state, read);
    CHECK(read == comparison);
    CHECK(find_compared_runs(session, read, AutomaticComparison::none, true).title == "[1] one.h5 − [2] two.h5");
    session.close(second);
    CHECK(find_compared_runs(session, read, AutomaticComparison::none, true).kind == Comparison::Kind::none);

    comparison = {Comparison::Kind::runs, {}, {}};
    CHECK(find_compared_runs(session, comparison, AutomaticComparison::none, true).kind == Comparison::Kind::none);
    const int first = session.documents().front()->id();
    session.pair.a = run_at(session, first, 0, 1);
    session.pair.b = run_at(session, first, 0, 3);
    const Compared pair = find_compared_runs(session, comparison, AutomaticComparison::none, true);
    REQUIRE(pair.pairs.size() == 1);
    CHECK(pair.pairs[0].label == "snapkv 16 − aperturekv 20");
}

TEST_CASE("the table of runs has a difference after each number of the second trace, and sorts by differences") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("cost"));
    driven.settle();
    auto table = view_of(driven).table();
    REQUIRE(table);
    const size_t value = column_of(*table, "coverage");
    const size_t difference = column_of(*table, "coverage_difference");
    CHECK(difference == value + 1);
    size_t n_compared = 0;
    for (const char* label : {"snapkv 16", "snapkv 24", "aperturekv 20", "kvslimmer 12"}) {
        const auto& one = row_of(*table, "one.h5", label);
        const auto& two = row_of(*table, "two.h5", label);
        CHECK(is_empty(one.cells[difference]));
        CHECK(real(two.cells[difference]) == real(two.cells[value]) - real(one.cells[value]));
        n_compared += real(two.cells[difference]) != 0;
    }
    CHECK(n_compared > 0);
    for (const char* format : {"tsv", "csv", "md", "tex", "json"})
        CHECK_FALSE(ExportDialog::text(*table, format).empty());
    CHECK(ExportDialog::text(*table, "csv").find("coverage_difference") != std::string::npos);

    driven.drive([](ImGuiTestContext& context) { context.ItemClick("**/Δ##coverage_difference"); });
    driven.settle();
    table = view_of(driven).table();
    std::vector<double> shown;
    for (const auto& row : table->rows) {
        if (!is_empty(row.cells[difference])) shown.push_back(real(row.cells[difference]));
    }
    REQUIRE(shown.size() > 3);
    CHECK(std::is_sorted(shown.rbegin(), shown.rend()));           // more coverage is better, so the largest is first
    CHECK_FALSE(is_empty(table->rows.front().cells[difference]));  // rows without a value are last

    driven.drive([](ImGuiTestContext& context) {
        context.SetRef(DrivenApp::window_of("Cost###cost").c_str());
        context.ComboClick("##compare cost/no differences");
    });
    driven.settle();
    table = view_of(driven).table();
    for (const auto& column : table->columns) CHECK(column.name.find("_difference") == std::string::npos);
}

TEST_CASE("A, B and their difference are above the table, whatever its sorting") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("cost", false));
    driven.settle();
    const size_t n_runs = view_of(driven).table()->rows.size();
    const int document = driven.session().documents().front()->id();
    driven.session().pair.a = run_at(driven.session(), document, 0, 3);
    driven.session().pair.b = run_at(driven.session(), document, 0, 1);
    driven.settle();
    for (const bool sorted : {false, true}) {
        if (sorted) driven.drive([](ImGuiTestContext& context) { context.ItemClick("**/Coverage"); });
        driven.settle();
        const auto table = view_of(driven).table();
        REQUIRE(table);
        CHECK(table->rows.size() == n_runs + 1);
        const auto named = [&](size_t row) {
            return std::get<kvscope::SharedText>(table->rows[row].cells[0]).string();
        };
        CHECK(named(0) == "A");
        CHECK(named(1) == "B");
        CHECK(named(2) == "A − B");
        const size_t coverage = column_of(*table, "coverage");
        const auto at = [&](size_t row) { return real(table->rows[row].cells[coverage]); };
        CHECK(at(2) == at(0) - at(1));
        CHECK(std::get<kvscope::SharedText>(table->rows[0].cells[column_of(*table, "label")]).string() ==
              "aperturekv 20");
        const size_t bytes = column_of(*table, "cache_bytes");
        CHECK(std::get<int64_t>(table->rows[2].cells[bytes]) ==
              std::get<int64_t>(table->rows[0].cells[bytes]) - std::get<int64_t>(table->rows[1].cells[bytes]));
    }
}

TEST_CASE("coverage shows one trace minus the other or A minus B, and the export equals the view") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("coverage"));
    driven.settle();
    CHECK_FALSE(view_of(driven).figure(driven.session())->difference);
    const auto choose = [&](const char* what) {
        driven.drive([&](ImGuiTestContext& context) {
            context.SetRef(DrivenApp::window_of("Coverage###coverage").c_str());
            context.ComboClick((std::string("##compare coverage/") + what).c_str());
        });
        driven.settle();
    };
    choose("two.h5 − one.h5");
    const auto request = view_of(driven).figure(driven.session());
    REQUIRE(request);
    CHECK(request->difference);
    const analysis::Figure figure = FigureJob(driven.session(), *request).figure();
    CHECK(figure.panels.front().shapes.size() == 5 + 1);  // a curve per pair, and the line at zero
    CHECK(figure.panels.front().y.min == -figure.panels.front().y.max);
    CHECK(ExportDialog::numbers(driven.session(), *request, "csv").find("difference") != std::string::npos);
    nlohmann::json state;
    view_of(driven).save(state);
    CHECK(state.at("compare_less") == "one.h5");

    driven.session().pair.a = run_at(driven.session(), driven.session().documents()[0]->id(), 0, 1);
    driven.session().pair.b = run_at(driven.session(), driven.session().documents()[1]->id(), 0, 3);
    driven.settle();
    choose("A − B");
    const auto pair = view_of(driven).figure(driven.session());
    const analysis::Figure of_pair = FigureJob(driven.session(), *pair).figure();
    CHECK(std::get<analysis::Line>(of_pair.panels.front().shapes.front()).label == "snapkv 16 − aperturekv 20");
    CHECK(driven.app().notices().empty());
}

TEST_CASE("the scatter of two traces has every shown run, and an arrow from each run to its pair") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("scatter"));
    driven.settle();
    const auto request = view_of(driven).figure(driven.session());
    REQUIRE(request);
    CHECK(request->difference);
    size_t n_arrows = 0, n_points = 0;
    const analysis::Figure figure = FigureJob(driven.session(), *request).figure();
    for (const auto& shape : figure.panels.front().shapes) {
        const auto* line = std::get_if<analysis::Line>(&shape);
        n_arrows += line && line->arrow;
        n_points += std::holds_alternative<analysis::Scatter>(shape);
    }
    CHECK(n_points == driven.session().visible_runs().size());
    CHECK(n_arrows == 5);
    CHECK(driven.app().notices().empty());
}

TEST_CASE("answers are compared with the full cache, A, or the same runs of another trace") {
    const TwoTraces files;
    Tasks tasks([] {});
    Session session(tasks);
    const int first = session.open(files.first).id();
    const int second = session.open(files.second).id();
    const RunKey snapkv = run_at(session, second, 0, 1);
    AnswerReference reference;
    reference.resolve(session);
    CHECK(reference.of(session, snapkv) == run_at(session, second, 0, 0));
    CHECK_FALSE(reference.of(session, run_at(session, second, 0, 0)));  // the reference itself

    reference.load({{"against", "a"}});
    reference.resolve(session);
    CHECK(reference.is_full());  // A is not chosen yet
    session.pair.a = run_at(session, first, 0, 3);
    reference.resolve(session);
    CHECK(reference.name() == "A");
    CHECK(reference.of(session, snapkv) == session.pair.a);

    reference.load({{"against", "trace"}, {"against_trace", "one.h5"}});
    reference.resolve(session);
    CHECK(reference.of(session, snapkv) == run_at(session, first, 0, 1));
    CHECK_FALSE(reference.of(session, run_at(session, first, 0, 1)));
    const Compared compared = reference.compared(session, session.visible_runs());
    CHECK(compared.pairs.size() == 5);
    const FigureRequest request = difference_figure_request("step-kl", compared);
    CHECK(FigureJob(session, request).figure().panels.front().shapes.size() == 5 + 1);
    nlohmann::json state;
    reference.save(state);
    CHECK(state.at("against_trace") == "one.h5");
}

TEST_CASE("answers choose their reference by a label, and their figure follows") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("answers", false));
    driven.session().pair.a = run_at(driven.session(), driven.session().documents().front()->id(), 0, 1);
    driven.settle();
    CHECK_FALSE(view_of(driven).figure(driven.session())->difference);
    driven.drive([](ImGuiTestContext& context) {
        context.SetRef(DrivenApp::window_of("Answers###answers").c_str());
        context.ComboClick("##answers against/A");
    });
    driven.settle();
    const auto request = view_of(driven).figure(driven.session());
    REQUIRE(request);
    CHECK(request->difference);
    CHECK(request->against_each);
    const analysis::Figure figure = FigureJob(driven.session(), *request).figure();
    CHECK(figure.panels.front().shapes.size() == 4 + 1);  // all but A itself
    CHECK(driven.app().notices().empty());
}

TEST_CASE("the figure of the answers contains a compared run without an answer") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    {
        const trace::sample::Options options;
        trace::Writer writer(folder / "silent.h5", "{}", {.force = true, .generator = "test"});
        writer.write_model(trace::sample::model(options));
        const trace::PromptRecord prompt = trace::sample::prompt(options);
        writer.write_prompt(0, prompt);
        writer.write_run(0, 0, trace::sample::full_run(options, prompt));
        trace::RunRecord silent = trace::sample::selecting_run(options, prompt, "snapkv", 16);
        silent.output_text.clear();
        silent.output_ids.assign(1, 2);
        writer.write_run(0, 1, silent);
        writer.finish();
    }
    AppOptions options;
    options.traces = {folder / "silent.h5"};
    options.view = "answers";
    DrivenApp driven(options);
    driven.settle();
    CHECK(driven.shown_text().find("empty answer") != std::string::npos);
    const auto request = view_of(driven).figure(driven.session());
    REQUIRE(request);
    CHECK(request->runs.size() == 1);
    CHECK(request->options.source.empty());  // a single run has nothing to compare with
    CHECK(!FigureJob(driven.session(), *request).figure().panels.front().shapes.empty());
}

TEST_CASE("a click into the map of steps selects the run and the step under the mouse") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    trace::sample::Options options;
    options.n_steps = 64;
    {
        trace::Writer writer(folder / "many.h5", "{}", {.force = true, .generator = "test"});
        writer.write_model(trace::sample::model(options));
        const trace::PromptRecord prompt = trace::sample::prompt(options);
        writer.write_prompt(0, prompt);
        writer.write_run(0, 0, trace::sample::full_run(options, prompt));
        for (int i = 1; i <= 25; ++i)
            writer.write_run(0, i, trace::sample::selecting_run(options, prompt, "snapkv", 10 + i));
        writer.finish();
    }
    AppOptions of_app;
    of_app.traces = {folder / "many.h5"};
    of_app.view = "answers";
    of_app.layout = "explore";
    of_app.remember = false;
    DrivenApp driven(of_app);
    for (const RunKey& run : driven.session().all_runs()) driven.session().set_visible(run, true);
    driven.settle();
    CHECK(view_of(driven).figure(driven.session())->options.source == "map");  // 25 curves would cover each other
    const auto click = [&](float y) {
        driven.drive([&](ImGuiTestContext& context) {
            context.MouseMoveToPos({800, y});
            context.MouseClick();
        });
        return driven.session().cursor();
    };
    const Cursor low = click(830);
    const Cursor high = click(790);
    CHECK(low.step > 16);
    CHECK(low.step < 48);
    CHECK(high.step == low.step);
    const auto place = [&](const Cursor& cursor) { return driven.session().at(cursor.run).run; };
    CHECK(place(high) > 1);
    CHECK(place(high) < place(low));
    CHECK(driven.app().notices().empty());
}

}  // namespace kvscope::gui::testing
