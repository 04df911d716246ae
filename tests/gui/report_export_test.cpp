#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "analysis/drawing/figure_definition.h"
#include "app/gui/figure/export_dialog.h"
#include "app/gui/figure/figure_job.h"
#include "common/json.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/sample_trace.h"
#include "tests/gui/two_traces.h"
#include "tests/skip.h"
#include "trace/hdf5/hdf5.h"

namespace kvscope::gui::testing {
namespace {

namespace fs = std::filesystem;

std::set<std::string> files_in(const fs::path& folder) {
    std::set<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) names.insert(entry.path().filename());
    return names;
}

std::string contents_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Presses a button of the report and answers its dialog. The dialog stays open if it needs a confirmation.
void answer_report(ImGuiTestContext& c, const char* button, const fs::path& path) {
    c.ItemClick(fmt::format("//report-1/**/{}##report", button).c_str());
    c.Yield(2);
    c.ItemInputValue("//$FOCUSED/##path", path.c_str());
    c.Yield(2);
}

void export_all(DrivenApp& driven, const fs::path& folder) {
    driven.drive([&](ImGuiTestContext& c) { answer_report(c, "Export all…", folder); });
}

bool is_told(DrivenApp& driven, const std::string& beginning) {
    const auto& notices = driven.app().notices();
    return std::any_of(notices.begin(), notices.end(),
                       [&](const std::string& notice) { return notice.starts_with(beginning); });
}

void set_report(DrivenApp& driven, const nlohmann::json& state) {
    driven.app().views().at(0)->view->load(state);
    driven.settle();
}

/// Notice at the end of an export of all figures.
std::string told_of_all(size_t n_written, const fs::path& folder) {
    return fmt::format("{} of {} figures written to {}", n_written, analysis::figure_definitions().size(),
                       folder.string());
}

AppOptions report_of(const fs::path& trace) {
    AppOptions options;
    options.traces = {trace};
    options.view = "report";
    options.layout = "explore";
    return options;
}

/// A trace whose prompt fills several pages.
struct LongTrace {
    trace::sample::TemporaryFolder folder;
    fs::path path = folder / "long.h5";
    LongTrace() {
        trace::sample::Options options;
        options.n_tokens = 1200;
        options.n_layers = 1;
        trace::sample::write(path, options);
    }
};

}  // namespace

TEST_CASE("The report shows an item of a paper with the item's options") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const trace::sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    trace::sample::write(path, {});
    DrivenApp driven(report_of(path));
    driven.drive([&](ImGuiTestContext& c) { c.ItemOpen("//report-1/**/###papers ApertureKV"); });
    driven.settle();  // until the trace is checked
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//report-1/**/###ApertureKV:F6"); });
    const auto request = driven.app().views().at(0)->view->figure(driven.session());
    REQUIRE(request);
    CHECK(request->figure == "query-similarity");
    CHECK(request->options.source == "mean-by-layer");
}

TEST_CASE("an export of all figures keeps its trace, whatever is selected, closed or opened meanwhile") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const TwoTraces files;
    const fs::path folder = files.folder / "all";
    DrivenApp driven(files.alone_in_the_window("report"));
    set_report(driven, {{"format", "csv"}});
    Session& session = driven.session();
    session.selection.select_run(session.documents().at(0)->key_of(0, 1));
    driven.settle();
    const auto retention = driven.app().views().at(0)->view->figure(session);
    REQUIRE(retention);
    const std::string expected = ExportDialog::numbers(session, *retention, "csv");
    const bool is_closed = GENERATE(false, true);
    CAPTURE(is_closed);
    {
        const trace::h5::Guard nothing_is_read_meanwhile;
        export_all(driven, folder);
        session.selection.select_run(session.documents().at(1)->key_of(0, 1));
        driven.draw_until([] { return false; }, 2);
        if (is_closed) {
            session.close(session.documents().at(0)->id());
            session.close(session.documents().at(0)->id());
            driven.draw_until([] { return false; }, 2);
            driven.app().open_trace(files.second);
            driven.draw_until([] { return false; }, 2);
        }
    }
    driven.settle();
    const auto names = files_in(folder);
    CHECK(names.size() > 10);
    for (const std::string& name : names) CHECK(name.starts_with("one-"));
    CHECK(contents_of(folder / "one-retention.csv") == expected);
    CHECK(is_told(driven, told_of_all(names.size(), folder)));
}

TEST_CASE("an export continues after the report is closed, and reports its end") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const fs::path folder = sample.folder / "all";
    DrivenApp driven(report_of(sample.path));
    set_report(driven, {{"format", "csv"}});
    const bool is_closed = GENERATE(false, true);
    CAPTURE(is_closed);
    {
        const trace::h5::Guard nothing_is_read_before;
        export_all(driven, folder);
        if (is_closed)
            driven.app().restore_layout({{"views", nlohmann::json::array()}});
        else
            driven.app().open_view(*find_view_kind("difference"));  // covers the report's tab
        driven.draw_until([] { return false; }, 2);
    }
    driven.settle();
    const auto names = files_in(folder);
    CHECK(names.size() > 10);
    CHECK(is_told(driven, told_of_all(names.size(), folder)));
}

TEST_CASE("a running export is completed when the window closes") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    {
        DrivenApp driven(report_of(sample.path));
        set_report(driven, {{"format", "csv"}});
        export_all(driven, sample.folder / "all");
        driven.settle();
        const trace::h5::Guard nothing_is_read_before;
        export_all(driven, sample.folder / "again");
    }
    CHECK(files_in(sample.folder / "all").size() > 10);
    CHECK(files_in(sample.folder / "again") == files_in(sample.folder / "all"));
}

TEST_CASE("a cancelled export reports the number of written figures") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    const fs::path folder = sample.folder / "all";
    DrivenApp driven(report_of(sample.path));
    set_report(driven, {{"format", "csv"}});
    {
        const trace::h5::Guard nothing_is_read_meanwhile;
        export_all(driven, folder);
        driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//report-1/**/Cancel##figure export"); });
    }
    driven.settle();
    const auto names = files_in(folder);
    CHECK(names.size() < analysis::figure_definitions().size());
    CHECK(is_told(driven, "Export cancelled: " + told_of_all(names.size(), folder)));
    export_all(driven, sample.folder / "again");
    driven.settle();
    CHECK(files_in(sample.folder / "again").size() > 10);
}

TEST_CASE("the app asks before it replaces the files of a figure's pages, and the notice names them") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const LongTrace trace;
    DrivenApp driven(report_of(trace.path));
    set_report(driven, {{"figure", "prompt"}});
    const fs::path first = trace.folder / "x-1.svg";
    std::ofstream(first) << "mine";
    std::string when_asked;
    driven.drive([&](ImGuiTestContext& c) {
        answer_report(c, "Export…", trace.folder / "x.svg");
        IM_CHECK(c.ItemExists("//$FOCUSED/Replace"));
        driven.app().tasks().wait();
        when_asked = contents_of(first);
        c.ItemClick("//$FOCUSED/Replace");
    });
    CHECK(when_asked == "mine");
    driven.settle();
    CHECK(contents_of(first).size() > 100);
    CHECK_FALSE(fs::exists(trace.folder / "x.svg"));
    REQUIRE(driven.app().notices().size() == 1);
    CHECK(driven.app().notices().back().find("pages written: " + first.string() + " to x-") != std::string::npos);
}

TEST_CASE("the app asks about a folder with files of a figure's pages") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const LongTrace trace;
    DrivenApp driven(report_of(trace.path));
    set_report(driven, {{"format", "svg"}});
    const fs::path folder = trace.folder / "all";
    fs::create_directory(folder);
    std::ofstream(folder / "long-prompt-2.svg") << "mine";
    driven.drive([&](ImGuiTestContext& c) {
        answer_report(c, "Export all…", folder);
        IM_CHECK(c.ItemExists("//$FOCUSED/Replace"));
        c.ItemClick("//$FOCUSED/Cancel");
    });
    driven.settle();
    CHECK(files_in(folder) == std::set<std::string>{"long-prompt-2.svg"});
}

TEST_CASE("a file without confirmation is kept, and the message names it") {
    const trace::sample::TemporaryFolder folder;
    std::ofstream(folder / "t.csv") << "mine";
    std::ofstream(folder / "t.tsv") << "mine";
    const figures::Exported what{{}, [] {
                                     analysis::Table table;
                                     table.columns = {{"label", "Label", ""}};
                                     return table;
                                 }};
    for (const char* name : {"t.csv", "t.tsv"}) {
        const fs::path path = folder / name;
        CHECK_THROWS_WITH(write_exported(what, path, {}, {}), Catch::Matchers::Contains(path.string()) &&
                                                                  Catch::Matchers::Contains("was not replaced") &&
                                                                  !Catch::Matchers::Contains("--force"));
        CHECK(contents_of(path) == "mine");
        CHECK(write_exported(what, path, {}, {path}) == std::vector{path});
        CHECK(contents_of(path).starts_with("label"));
    }
}

TEST_CASE("a saved setting makes CSV and TSV safe for spreadsheets in copies and files") {
    analysis::Table table;
    table.columns = {{"text", "Text", ""}};
    table.rows = {{{std::string("=1+1")}}};
    for (const char* format : {"csv", "tsv"}) {
        CHECK(ExportDialog::text(table, format, false) == "text\n=1+1\n");
        CHECK(ExportDialog::text(table, format, true) == "text\n'=1+1\n");
    }
    CHECK(ExportDialog::text(table, "md", true) == ExportDialog::text(table, "md", false));
    const SampleTrace sample;
    const fs::path file = sample.folder / "t.tsv";
    figures::ExportOptions safe;
    safe.csv_safe = true;
    write_exported({{}, [&] { return table; }}, file, safe, {});
    CHECK(contents_of(file) == "text\n'=1+1\n");

    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    setenv("XDG_CONFIG_HOME", (sample.folder / "config").c_str(), 1);
    {
        DrivenApp driven(alone(sample, "head_divergence"), true);
        driven.settle();
        CHECK_FALSE(driven.session().csv_safe);
        driven.drive([&](ImGuiTestContext& c) {
            c.MouseMoveToPos(c.GetWindowByRef("//head_divergence-1")->Rect().GetCenter());
            c.MouseClick(ImGuiMouseButton_Right);
            c.Yield(2);
            c.SetRef("//$FOCUSED");
            c.MenuClick("Copy numbers as/CSV and TSV safe for spreadsheets");
            c.Yield(2);
        });
        CHECK(driven.session().csv_safe);
        CHECK(driven.draw_until([&] { return load_settings(settings_file()).csv_safe; }, 4000));
    }
    DrivenApp again(report_of(sample.path), true);
    CHECK(again.session().csv_safe);
    set_report(again, {{"format", "csv"}});
    again.drive([&](ImGuiTestContext& c) { c.ItemUncheck("//report-1/**/safe for spreadsheets##report"); });
    CHECK_FALSE(again.session().csv_safe);
    unsetenv("XDG_CONFIG_HOME");
}

TEST_CASE("a folder that cannot be used is refused in the dialog") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    DrivenApp driven(report_of(sample.path));
    fs::create_symlink("loop", sample.folder / "loop");
    const std::string name = GENERATE(std::string("loop"), std::string(300, 'x'));
    driven.drive([&](ImGuiTestContext& c) {
        answer_report(c, "Export all…", sample.folder / name);
        IM_CHECK(c.ItemExists("//$FOCUSED/Save"));
        c.ItemClick("//$FOCUSED/Save");
        IM_CHECK(c.ItemExists("//$FOCUSED/Save"));
        c.ItemClick("//$FOCUSED/Cancel");
    });
    driven.settle();
    CHECK(driven.app().notices().empty());
}

TEST_CASE("the report's page arrow shows the next page and stays there") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const LongTrace trace;
    DrivenApp driven(report_of(trace.path));
    set_report(driven, {{"figure", "prompt"}});
    CHECK(driven.shown_text().find("page 1 of ") != std::string::npos);
    driven.drive([&](ImGuiTestContext& c) { c.ItemClick("//report-1/**/page after##report"); });
    driven.settle();
    for (int i = 0; i < 8; ++i) {
        driven.app().tasks().wait();
        CHECK(driven.shown_text().find("page 2 of ") != std::string::npos);
    }
}

TEST_CASE("the report's task scores show the results' settings, whatever runs are shown") {
    if (!test_window()) KVSCOPE_SKIP("there is no display; run under xvfb-run");
    const SampleTrace sample;
    AppOptions options = explore(sample);
    options.view = "report";
    DrivenApp driven(options);
    driven.settle();
    set_report(driven, {{"figure", "task-scores"}});
    const auto request = driven.app().views().at(0)->view->figure(driven.session());
    REQUIRE(request);
    CHECK(request->runs.empty());
    CHECK(FigureJob(driven.session(), *request).numbers().rows.size() > 1);
}

}  // namespace kvscope::gui::testing
