#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>

#include "analysis/results/summary_table.h"
#include "analysis/results/verdicts.h"
#include "analysis/runs/task_scores.h"
#include "app/cli/command.h"
#include "app/cli/engine/declare_run_options.h"
#include "app/cli/engine/predict_job.h"
#include "app/cli/engine/run_in_terminal.h"
#include "app/cli/engine/shard_option.h"
#include "app/cli/engine/task_flags.h"
#include "app/cli/inspect_trace.h"
#include "app/cli/option_validators.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"
#include "trace/reader.h"

namespace kvscope::cli::eval_file {
namespace {

struct Arguments {
    program::RunJob job;
    TerminalOptions terminal;
    std::string task = "niah";
    TaskFlags flags;
    std::string query_aware = "on";
    OutputFormat format;
    std::string shard;
    std::filesystem::path prediction;
};

/// Prints verdicts and the table of scores, or the table of times. Failures follow the table. In formats for programs,
/// only failures are printed besides the table, to stderr.
void show(const Arguments& arguments, const trace::Reader& reader) {
    const auto rows = reader.results(arguments.task);
    const auto groups = analysis::group_results_by_setting_and_budget(rows);
    const bool is_for_people = arguments.format.is_for_people();
    if (arguments.job.task->measures_time) {
        arguments.format.print(analysis::overview_of_costs(analysis::results_of_trace(reader)));
        for (const auto& failure : analysis::describe_failed_runs(groups)) print_to_stderr(failure);
        return;
    }
    const bool with_sentences = is_for_people && arguments.format.name() != "tex";
    if (with_sentences) print(fmt::format("\n{}\n", fmt::join(analysis::verdicts(groups), "\n")));
    if (arguments.format.is_text()) print("\n" + caption_of_scores(arguments.task) + "\n");
    arguments.format.print(is_for_people ? analysis::task_scores_by_budget(groups) : analysis::task_scores(groups));
    std::string failures;
    for (const auto& failure : analysis::describe_failed_runs(groups)) failures += failure + "\n";
    if (!with_sentences) {
        if (!failures.empty()) print_to_stderr(failures.substr(0, failures.size() - 1));
        return;
    }
    std::string text;
    for (const std::string& said : {describe_what_policies_saw(rows), failures})
        if (!said.empty()) text += "\n" + said + (said.ends_with('\n') ? "" : "\n");
    print(text);
}

int act(Arguments& arguments) {
    auto& job = arguments.job;
    set_shard(job, arguments.shard);
    arguments.terminal.model.copy_to(job.experiment);
    job.experiment.n_new = arguments.flags.n_new(*job.task);
    job.experiment.query_aware = arguments.query_aware != "off";
    job.asks_in_both_ways = arguments.query_aware == "both";
    if (!arguments.prediction.empty()) return predict_job(job, arguments.terminal, arguments.prediction);
    const auto outcome = run_with_progress(job, arguments.terminal);
    if (outcome.is_empty_shard) return outcome.n_left_out > 0 ? 1 : 0;
    show(arguments, trace::Reader(job.output));
    return outcome.n_failed > 0 || outcome.n_left_out > 0 ? 1 : 0;
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    auto& job = arguments->job;
    arguments->terminal.model.declare(app);
    app.add_option("--task,--tasks", arguments->task,
                   "Benchmark task; `kvscope tasks` describes the tasks, and `--task NAME --help` the options of one")
        ->transform(OneOf(defined_names(engine::tasks())))
        ->each([arguments](const std::string& name) { arguments->flags.describe_only(engine::task_named(name)); })
        ->capture_default_str();
    declare_policy_and_budget_options(app, job);
    arguments->flags.declare(app, engine::tasks());
    app.parse_complete_callback([arguments] {
        const engine::Task& task = engine::task_named(arguments->task);
        program::set_task(arguments->job, task,
                          arguments->flags.read(task, policies::ParameterValues(task.parameters)));
    });
    app.add_option("--query-aware", arguments->query_aware,
                   "Whether policies see the question; if off, the context is compressed before the question is read; "
                   "both: each sample is answered in both ways")
        ->transform(OneOf({"on", "off", "both"}))
        ->capture_default_str();
    app.add_option("-o,--output", job.output,
                   "Trace to write, with the scores in /results/<task>; an existing trace is extended")
        ->required()
        ->type_name("TRACE.h5");
    declare_disk_limit(app, job);
    declare_shard_option(app, arguments->shard, "samples");
    declare_prediction(app, arguments->prediction);
    declare_outcome(app, arguments->terminal);
    app.add_flag("--force", job.force, "Replace an existing output");
    app.add_flag("-q,--quiet", arguments->terminal.quiet, "Hide progress");
    arguments->format.declare(app);
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::eval_file

namespace kvscope::cli {

Command eval_command() {
    using namespace eval_file;
    return {"eval", "Answer a benchmark task with many policies and budgets, and score the answers",
            "  kvscope eval --task niah --policy snapkv --policy random --budget 64,128 -o niah.h5\n"
            "  kvscope eval --task niah --policy snapkv --policy random --budget 64,128 --samples 6 -o niah.h5   # "
            "continues\n"
            "  kvscope eval --lengths 1000,4000 --samples 5 --policy dapq --budget 64-512*2 --format md -o niah.h5",
            declare};
}

}  // namespace kvscope::cli
