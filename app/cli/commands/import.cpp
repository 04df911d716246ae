#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/terminal.h"
#include "app/program/version.h"
#include "app/results/imported_results.h"
#include "common/json.h"
#include "trace/records/trace_errors.h"
#include "trace/writer.h"

namespace kvscope::cli::import_file {
namespace {

namespace fs = std::filesystem;

struct Arguments {
    std::vector<fs::path> paths;
    std::string metric;
    fs::path output;
    bool force = false;
    bool quiet = false;
};

/// Returns a recipe with the digests of the files, so that the same command finds its complete output, and with the
/// questions.
std::string recipe_of(const results::Imported& imported, const std::string& metric) {
    nlohmann::ordered_json recipe;
    recipe["imported"] = nlohmann::ordered_json::array();
    for (const auto& [file, digest] : imported.digests)
        recipe["imported"].push_back({{"file", fs::path(file).filename().string()}, {"sha256", digest}});
    if (!metric.empty()) recipe["metric"] = metric;
    if (!imported.questions.empty()) recipe["questions"] = analysis::json_of_questions(imported.questions);
    return recipe.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Describes the rows of a table: "ruler: 120 rows of snapkv, full; 20 samples".
std::string describe(const std::string& task, const std::vector<trace::ResultRow>& rows) {
    std::set<std::string> policies, models;
    for (const trace::ResultRow& row : rows) {
        policies.insert(row.source.empty() ? row.policy.string() : fmt::format("{} ({})", row.policy, row.source));
        models.insert(row.model);
    }
    return one_line(fmt::format("{}: {} row{} of {}; model {}", task, rows.size(), rows.size() == 1 ? "" : "s",
                                fmt::join(policies, ", "), fmt::join(models, ", ")));
}

int act(const Arguments& arguments) {
    const results::Imported imported = results::read_results(arguments.paths, arguments.metric);
    for (const std::string& problem : imported.left_out) print_to_stderr("kvscope: left out: " + one_line(problem));
    if (!arguments.quiet)
        for (const std::string& note : imported.notes) print_to_stderr("kvscope: " + one_line(note));
    const int code = imported.left_out.empty() ? 0 : 1;
    const auto tables = results::tables_of_results(imported);
    try {
        trace::Writer writer(arguments.output, recipe_of(imported, arguments.metric),
                             {.force = arguments.force, .generator = fmt::format("kvscope {}", program::version())});
        for (const auto& [task, rows] : tables)
            if (!writer.has_results(task, 0)) writer.write_results(task, 0, rows);
        writer.finish();
    } catch (const trace::AlreadyComplete&) {
        print_to_stderr(arguments.output.string() + " already contains these results: nothing to do");
        return code;
    }
    if (!arguments.quiet)
        for (const auto& [task, rows] : tables)
            print_to_stderr(fmt::format("{} written: {}", arguments.output.string(), describe(task, rows)));
    return code;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    app.add_option("results", arguments->paths,
                   "Folders of kvpress's evaluation (predictions.csv, metrics.json, config.yaml), folders of lm-eval's "
                   "output, or files results_<time>.json; folders are searched with all their subfolders")
        ->type_name("FOLDER…")
        ->required();
    app.add_option("-o,--output", arguments->output, "Trace to write")->type_name("TRACE.h5")->required();
    app.add_option("--metric", arguments->metric,
                   "lm-eval's metric that is the score, with its filter if there are several, as in "
                   "exact_match,strict-match (default: the first metric of each task)")
        ->type_name("METRIC");
    app.add_flag("--force", arguments->force, "Replace an existing output");
    app.add_flag("-q,--quiet", arguments->quiet, "Hide the summary and notes");
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::import_file

namespace kvscope::cli {

Command import_command() {
    using namespace import_file;
    return {"import", "Read results of kvpress or lm-eval into a trace, for tables with results of kvscope",
            "  kvscope import results/ -o kvpress.h5\n"
            "  kvscope export mine.h5 kvpress.h5 --figure results-table -o both.tex",
            declare};
}

}  // namespace kvscope::cli
