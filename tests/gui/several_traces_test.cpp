#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <utility>

#include "analysis/token_report.h"
#include "app/figures/figure_format.h"
#include "app/gui/figure/export_dialog.h"
#include "app/gui/figure/figure_job.h"
#include "app/gui/view/run_label.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/run_places.h"
#include "tests/gui/two_traces.h"
#include "tests/skip.h"
#include "tests/trace/sample_trace.h"
#include "trace/hdf5/hdf5.h"

namespace kvscope::gui::testing {
namespace fs = std::filesystem;

TEST_CASE("the inspector lists the runs of all traces with the same tokens, and its tables can be copied") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    const fs::path again = files.folder / "again.h5";
    fs::copy_file(files.first, again);
    AppOptions options = files.alone_in_the_window("inspector");
    options.traces.push_back(again);  // a further trace with another prompt
    DrivenApp driven(options);
    driven.settle();
    Session& session = driven.session();
    const int first = session.documents().at(0)->id();
    const int third = session.documents().at(2)->id();
    session.selection.select_run(run_at(session, first, 0, 1));
    session.selection.select_token(5);
    driven.settle();
    std::optional<analysis::Table> table;
    driven.drive([&](ImGuiTestContext& c) {
        c.MouseMoveToPos({200, 75});  // outside the lower tables
        c.Yield(3);
        table = driven.app().views().at(0)->view->table();
    });
    REQUIRE(table);
    CHECK(table->name == "kept");
    size_t n_shown = 0;
    for (const RunKey& key : session.visible_runs()) n_shown += key.document == first || key.document == third;
    REQUIRE(n_shown > 2);
    CHECK(table->rows.size() == n_shown);
    std::set<std::string> traces;
    for (const auto& row : table->rows) traces.insert(std::get<kvscope::SharedText>(row.cells.at(0)).string());
    CHECK(traces == std::set<std::string>{session.look(run_at(session, first, 0, 1)).trace,
                                          session.look(run_at(session, third, 0, 1)).trace});
    const std::string text = ExportDialog::text(*table, "csv");
    CHECK(text.find(session.look(run_at(session, third, 0, 1)).trace) != std::string::npos);

    // For a range, the number of tokens that each run keeps.
    Cursor range = session.cursor();
    range.first_token = 5;
    range.last_token = 16;
    session.selection.set(range);
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) {
        c.Yield(3);
        table = driven.app().views().at(0)->view->table();
    });
    REQUIRE(table);
    CHECK(table->title == "Where tokens 5 to 16 are kept");
    REQUIRE(table->columns.at(2).name == "tokens_kept");
    const RunKey run = run_at(session, first, 0, 1);
    const auto reports = analysis::span_report(*session.document(run)->reader(), 0, 5, 16);
    bool is_there = false;
    for (const auto& row : table->rows) {
        if (std::get<kvscope::SharedText>(row.cells.at(1)).string() != session.look(run).run) continue;
        is_there = true;
        CHECK(std::get<int64_t>(row.cells.at(2)) == static_cast<int64_t>(reports.at(1).n_tokens_kept));
    }
    CHECK(is_there);
    CHECK(driven.shown_text().find("12 tokens: some kept somewhere by") != std::string::npos);
}

TEST_CASE("undo after a trace is closed reports only the reopened trace") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    AppOptions options;
    options.traces = {files.first, files.second};
    options.layout = "explore";
    options.remember = false;
    DrivenApp driven(options);
    driven.settle();
    const auto press = [&](ImGuiKeyChord key) {
        driven.drive([&](ImGuiTestContext& c) {
            c.KeyPress(key);
            c.Yield(8);
        });
        driven.settle();
    };
    const auto n_hidden = [&] { return driven.session().documents().at(0)->hidden.size(); };
    const size_t before = n_hidden();
    press(ImGuiKey_2);
    REQUIRE(n_hidden() != before);
    driven.drive([&](ImGuiTestContext& c) { c.Yield(2); });
    driven.session().close(driven.session().documents().at(1)->id());
    driven.settle();
    press(ImGuiKey_3);
    REQUIRE(n_hidden() == before + 2);
    press(ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(driven.app().notices().back() == "Undone: shown runs");
    CHECK(n_hidden() == before + 1);
    press(ImGuiMod_Ctrl | ImGuiKey_Z);
    CHECK(driven.app().notices().back() == "Undone: closing of a trace, shown runs");
    CHECK(n_hidden() == before);
}

TEST_CASE("the inspector's range ends before the question") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    trace::sample::Options sample;
    sample.n_questions = 2;
    trace::sample::write(folder / "q.h5", sample);
    AppOptions options;
    options.traces = {folder / "q.h5"};
    options.view = "inspector";
    options.remember = false;
    DrivenApp driven(options);
    driven.settle();
    Session& session = driven.session();
    const auto& prompt = session.documents().at(0)->reader()->prompt(0);
    REQUIRE(prompt.visible_tokens() + 2 < prompt.n_tokens);
    session.selection.select_run(run_at(session, session.documents().at(0)->id(), 0, 1));
    Cursor range = session.cursor();
    range.first_token = prompt.visible_tokens() - 2;
    range.last_token = prompt.n_tokens - 1;
    session.selection.set(range);
    driven.settle();
    CHECK(driven.shown_text().find("2 tokens: some kept somewhere by") != std::string::npos);
    range.first_token = prompt.visible_tokens() - 1;
    session.selection.set(range);
    driven.settle();
    CHECK(driven.shown_text().find("tokens: some") == std::string::npos);
    CHECK(driven.shown_text().find("kept somewhere by") != std::string::npos);
}

TEST_CASE("the spectrum of a head alone follows the selected KV head, or the selected query head") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("spectrum"));
    driven.settle();
    View& view = *driven.app().views().at(0)->view;
    view.load({{"of_head", true}});
    const auto heads = [&] { return view.figure(driven.session())->options.heads; };
    const auto is_enabled = [&] {
        bool enabled = false;
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef(DrivenApp::window_of("spectrum").c_str());
            enabled = (c.ItemInfo("**/###head spectrum").ItemFlags & ImGuiItemFlags_Disabled) == 0;
        });
        return enabled;
    };
    // Without a selected head, the check box has no effect.
    driven.session().selection.select_layer(1);
    CHECK(heads().empty());
    CHECK_FALSE(is_enabled());
    driven.session().selection.select_head(1, 1);
    CHECK(heads() == std::vector<int>{2, 3});  // 4 query heads read 2 KV heads
    driven.settle();
    CHECK(is_enabled());
    driven.session().selection.select_head(1, 0, 1);
    CHECK(heads() == std::vector<int>{1});
    driven.session().selection.select_head(2, 1, 3);
    CHECK(heads() == std::vector<int>{3});
    driven.settle();
    CHECK(shown_by(driven).panels.size() == 6);  // Q, K, V of both traces
}

TEST_CASE("a shortened run label never equals the label of another trace's run") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    trace::sample::TemporaryFolder folder;
    AppOptions options;
    for (const char* name : {"before", "after"}) {
        fs::create_directory(folder / name);
        trace::sample::write(folder / name / "report.h5");
        options.traces.push_back(folder / name / "report.h5");
    }
    options.remember = false;
    DrivenApp driven(options);
    driven.settle();
    driven.drive([&](ImGuiTestContext&) {
        const auto& documents = driven.session().documents();
        const RunLook first = driven.session().look(documents.at(0)->key_of(0, 1));
        const RunLook second = driven.session().look(documents.at(1)->key_of(0, 1));
        for (float width = 400; width > 10; width -= 10) {
            CAPTURE(width);
            const std::string shown = label_that_fits(first, width);
            const std::string alone = shorten_run_label(first.run, width);
            CHECK((shown == alone || shown != label_that_fits(second, width)));
            CHECK((shown == alone || ImGui::CalcTextSize(shown.c_str()).x <= width));
        }
    });
}

TEST_CASE("one plot contains the runs of all open traces, named by file, and each curve has its run") {
    const TwoTraces files;
    Tasks tasks([] {});
    Session session(tasks);
    const int first = session.open(files.first).id();
    const int second = session.open(files.second).id();
    const FigureRequest request = figure_request_for_shown_runs(session, "coverage", true, Traces::all);
    const analysis::Figure figure = FigureJob(session, request).figure();
    const FigureJob job(session, request);
    const PreparedFigure shown{figure, {}, job.runs()};
    size_t n_second = 0;
    for (size_t i = 0; i < figure.panels.front().shapes.size(); ++i) {
        const auto& line = std::get<analysis::Line>(figure.panels.front().shapes[i]);
        const RunKey run = shown.run_of(0, i);
        REQUIRE(session.exists(run));
        CHECK(line.label == session.look(run).label);
        CHECK(line.style.color == session.look(run).style.color);
        n_second += run.document == second;
    }
    CHECK(figure.panels.front().shapes.size() == session.visible_runs().size());
    CHECK(n_second == 5);

    session.set_visible(run_called(session, "two.h5: snapkv 16"), false);
    const FigureRequest fewer = figure_request_for_shown_runs(session, "coverage", true, Traces::all);
    CHECK(figure_change_stamp(session, fewer) != figure_change_stamp(session, request));
    CHECK(FigureJob(session, fewer).figure().panels.front().shapes.size() + 1 == figure.panels.front().shapes.size());

    session.close(second);
    const FigureRequest alone = figure_request_for_shown_runs(session, "coverage", true, Traces::all);
    CHECK(alone.document == first);
    CHECK(!session.exists(shown.run_of({1, 1, -1})));
}

TEST_CASE("files with the same name are distinguished by their folders") {
    const trace::sample::TemporaryFolder folder;
    fs::create_directories(folder / "a");
    fs::create_directories(folder / "b");
    trace::sample::write(folder / "a" / "t.h5");
    trace::sample::write(folder / "b" / "t.h5");
    Tasks tasks([] {});
    Session session(tasks);
    CHECK(session.name_of(session.open(folder / "a" / "t.h5")) == "t.h5");
    CHECK(session.name_of(session.open(folder / "b" / "t.h5")) == "b/t.h5");
    CHECK(session.look(session.documents()[0]->key_of(0, 1)).label == "a/t.h5: snapkv 16");
}

TEST_CASE("Ctrl+O replaces the focused trace, and Ctrl+Shift+O opens another one") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    const bool is_beside = GENERATE(false, true);
    DrivenApp driven(files.alone_in_the_window("runs", false));
    driven.settle();
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_O | (is_beside ? static_cast<int>(ImGuiMod_Shift) : 0));
        c.Yield(3);
        c.ItemInputValue("//$FOCUSED/##path", files.second.c_str());
        c.Yield(3);
    });
    driven.settle();
    const auto& open = driven.session().documents();
    REQUIRE(open.size() == (is_beside ? 2 : 1));
    CHECK(open.back()->path() == files.second);
    CHECK(driven.session().focus() != nullptr);
    // A file that cannot be opened changes nothing.
    driven.drive([&](ImGuiTestContext& c) {
        c.KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
        c.Yield(3);
        c.ItemInputValue("//$FOCUSED/##path", "/proc/self/status");
        c.Yield(3);
    });
    driven.settle();
    CHECK(driven.session().documents().size() == (is_beside ? 2u : 1u));
}

TEST_CASE("with one trace left, no view offers all open traces") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("head_divergence"));
    driven.settle();
    Session& session = driven.session();
    session.pair.a = run_called(session, "one.h5: snapkv 16");
    session.pair.b = run_called(session, "one.h5: snapkv 24");
    const auto offered = [&] {
        std::vector<std::string> lines;
        driven.settle();
        driven.drive([&](ImGuiTestContext& c) {
            c.SetRef(DrivenApp::window_of("Head divergence###head_divergence").c_str());
            c.ItemClick("##traces head_divergence");
            for (const char* line : {"the selected trace", "all open traces", "A − B"})
                if (c.ItemExists(("//$FOCUSED/" + std::string(line)).c_str())) lines.emplace_back(line);
            c.PopupCloseAll();
        });
        return lines;
    };
    CHECK(offered() == std::vector<std::string>{"the selected trace", "all open traces", "A − B"});
    session.close(session.documents().back()->id());
    CHECK(offered() == std::vector<std::string>{"the selected trace", "A − B"});
    CHECK(shown_by(driven).panels.size() == 3);
}

TEST_CASE("Retention shows a layer's heads although the model of another open trace lacks this layer") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    TwoTraces files;
    trace::sample::Options fewer;
    fewer.n_layers = 2;
    trace::sample::write(files.second, fewer);
    const bool is_first = GENERATE(true, false);
    if (!is_first) std::swap(files.first, files.second);
    DrivenApp driven(files.alone_in_the_window("retention"));
    driven.app().views().front()->view->load({{"layer", 2}});
    driven.settle();
    nlohmann::json state;
    driven.app().views().front()->view->save(state);
    CHECK(state.at("layer") == 2);
    CHECK(driven.app().n_errors() == 0);
}

TEST_CASE("every figure view shows two traces, and A − B of them, without an error") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    const char* view =
        GENERATE("coverage", "budgets", "spectrum", "query_similarity", "head_divergence", "cost", "scatter", "report");
    CAPTURE(view);
    DrivenApp driven(files.alone_in_the_window(view));
    Session& session = driven.session();
    for (const bool difference : {false, true}) {
        if (difference) {
            session.pair.a = run_called(session, "one.h5: snapkv 16");
            session.pair.b = run_called(session, "two.h5: aperturekv 20");
            driven.app().views().front()->view->load({{"traces", "difference"}});
        }
        driven.settle();
        const View& shown = *driven.app().views().front()->view;
        if (const auto request = shown.figure(session)) {
            CHECK(request->n_traces() == 2);
            if (difference && request->figure == "retention") {  // prompts with different lengths
                CHECK_THROWS_AS(FigureJob(session, *request).figure(), analysis::NothingToShow);
                continue;
            }
            CHECK_NOTHROW(FigureJob(session, *request).figure());
            CHECK_FALSE(FigureJob(session, *request).numbers().rows.empty());
        }
    }
    CHECK(driven.app().notices().empty());
}

TEST_CASE("Ctrl+Shift+E exports the table of runs with the traces' names") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("cost"));
    driven.settle();
    const auto table = driven.app().views().front()->view->table();
    REQUIRE(table);
    CHECK(table->rows.size() == driven.session().all_runs().size());
    const std::string markdown = ExportDialog::text(*table, "md");
    CHECK(markdown.find("two.h5") != std::string::npos);
    CHECK_THROWS_AS(figures::figure_format_for("t.pdf").render({{}, [&] { return *table; }}, {}), figures::FormatError);

    const fs::path path = files.folder / "runs.md";
    driven.drive([&](ImGuiTestContext& context) {
        context.WindowFocus(DrivenApp::window_of("Cost###cost").c_str());
        context.KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E);
        context.Yield(2);
        context.SetRef("//$FOCUSED");
        context.ItemInputValue("**/##path", path.c_str());
        context.Yield(2);
    });
    driven.draw_until([&] { return fs::exists(path); }, 4000);
    REQUIRE(fs::exists(path));
    std::ifstream file(path);
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == markdown);
}

TEST_CASE("closing a trace with the mouse over its spectra leaves the other traces visible") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("spectrum"));
    driven.settle();
    const std::string source = GENERATE("adjacent", "layer-similarity");
    CAPTURE(source);
    driven.app().views().at(0)->view->load({{"source", source}});
    driven.settle();
    const int second = driven.session().documents().at(1)->id();
    driven.session().selection.select_run(driven.session().documents().at(1)->key_of(0, 1));
    driven.settle();
    bool is_over_second = false;
    driven.drive([&](ImGuiTestContext& c) {
        const ImGuiWindow* window = c.GetWindowByRef("//spectrum-1");
        for (int y = 3; y < 38 && !is_over_second; y += 2) {
            for (int x = 38; x > 2 && !is_over_second; --x) {
                c.MouseTeleportToPos({window->Pos.x + window->Size.x * static_cast<float>(x) / 40,
                                      window->Pos.y + window->Size.y * static_cast<float>(y) / 40});
                c.Yield(2);
                is_over_second = driven.session().hover().run.document == second && driven.session().hover().layer >= 0;
            }
        }
        driven.session().close(second);
        c.Yield(6);
    });
    CHECK(is_over_second);
    driven.settle();
    CHECK(driven.session().documents().size() == 1);
    CHECK(driven.app().view_failures().empty());
}

TEST_CASE("figures with chosen runs are redrawn when one of these runs changes") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    Tasks tasks([] {});
    Session session(tasks);
    Document& document = session.open(folder / "t.h5");
    const trace::sample::Options options;
    auto runs = trace::sample::runs(options, trace::sample::prompt(options, 0));
    auto what_if = runs[1];
    what_if.label += " what-if";
    const RunId id = document.add_run(0, what_if, document.id_of(0, 1));
    for (const RunKey& key : session.all_runs()) session.set_visible(key, false);
    const FigureRequest request = figure_request_for_shown_runs(session, "coverage", true);
    REQUIRE(request.runs.empty());
    const std::string before = figure_change_stamp(session, request);
    CHECK(figure_change_stamp(session, request) == before);
    runs[0].policy = what_if.policy;
    runs[0].label = what_if.label;
    document.replace_run(id, runs[0]);
    CHECK(figure_change_stamp(session, request) != before);
}

TEST_CASE("the inspector shows numbers with their own run and token while the next numbers are read") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    DrivenApp driven(files.alone_in_the_window("inspector", false));
    driven.settle();
    const Document& document = *driven.session().focus();
    const auto select = [&](int run, int64_t token) {
        driven.session().selection.select_run(document.key_of(0, run));
        driven.session().selection.select_token(token);
    };
    const auto texts = [&] {  // skips the status bar, which ends with the number of tokens
        const std::string all = driven.shown_text();
        return all.substr(all.find(" tokens"));
    };
    select(1, 5);
    driven.settle();
    const std::string first = texts();
    const std::string first_table = driven.app().views().at(0)->view->table().value().title;
    select(3, 9);
    driven.settle();
    const std::string second = texts();
    REQUIRE(first != second);
    select(1, 5);
    driven.settle();
    REQUIRE(texts() == first);
    {
        const trace::h5::Guard disk_is_busy;
        select(3, 9);
        driven.draw_until([] { return false; }, 4);
        CHECK(texts() == first);
        const auto table = driven.app().views().at(0)->view->table();
        REQUIRE(table);
        CHECK(table->title == first_table);
    }
    driven.settle();
    CHECK(texts() == second);
}

TEST_CASE("a click on a map of another trace selects no run of that trace") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    const std::string view = GENERATE("difference", "query_similarity");
    CAPTURE(view);
    DrivenApp driven(files.alone_in_the_window(view.c_str()));
    driven.settle();
    Session& session = driven.session();
    const int first = session.documents().at(0)->id();
    const int second = session.documents().at(1)->id();
    session.pair.a = run_at(session, second, 0, 1);
    session.pair.b = run_at(session, second, 0, 2);
    session.selection.select_run(run_at(session, first, 0, 3));
    driven.settle();
    bool is_over_second = false;
    driven.drive([&](ImGuiTestContext& c) {
        const ImGuiWindow* window = c.GetWindowByRef(("//" + view + "-1").c_str());
        for (int y = 4; y < 38 && !is_over_second; y += 2) {
            for (int x = 38; x > 2 && !is_over_second; --x) {
                c.MouseTeleportToPos({window->Pos.x + window->Size.x * static_cast<float>(x) / 40,
                                      window->Pos.y + window->Size.y * static_cast<float>(y) / 40});
                c.Yield(2);
                is_over_second = session.hover().run.document == second && session.hover().has_tokens();
            }
        }
        c.MouseClick(ImGuiMouseButton_Left);
        c.Yield(3);
    });
    REQUIRE(is_over_second);
    CHECK(session.cursor().has_tokens());
    CHECK(session.cursor().run.document == second);
    CHECK(!session.cursor().run.valid());  // run 3 of the first trace is not in the second
}

}  // namespace kvscope::gui::testing
