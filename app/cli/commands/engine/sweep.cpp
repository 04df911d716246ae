#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/engine/shard_option.h"
#include "app/cli/option_validators.h"
#include "app/cli/stop_signal.h"
#include "app/cli/sweep/sweep_tables.h"
#include "app/cli/table_format_option.h"
#include "app/cli/terminal.h"
#include "common/file_text.h"
#include "common/stopped.h"
#include "common/whole_file.h"

namespace kvscope::cli::sweep_file {
namespace {

namespace fs = std::filesystem;

constexpr int most_processes = 1024;

struct Arguments {
    fs::path file;
    fs::path folder;
    GivenOptions given;
    int n_processes = 1;
    std::string shard;
    int joined_shards = 0;
    bool is_dry_run = false;
    bool quiet = false;
    OutputFormat format;
};

/// The settings come from a YAML file, or from the folder of an earlier sweep.
void find_file_and_folder(Arguments& arguments) {
    std::error_code error;
    if (fs::is_directory(arguments.file, error)) {
        if (!arguments.folder.empty() && !fs::equivalent(arguments.folder, arguments.file, error))
            throw std::invalid_argument(
                fmt::format("{} is the folder of a sweep, which continues there: remove -o, or name a YAML file",
                            arguments.file.string()));
        arguments.folder = arguments.file;
        arguments.file = SweepFolder(arguments.folder).settings();
    }
    if (arguments.folder.empty()) arguments.folder = arguments.file.stem();
    if (fs::exists(arguments.folder, error) && !fs::is_directory(arguments.folder, error))
        throw std::invalid_argument(arguments.folder.string() + " is a file: choose a folder with -o");
}

/// Does not write an unchanged file, because several processes may read it.
void write_settings(const SweepFolder& folder, const std::vector<SweepSetting>& settings) {
    folder.create();
    const std::string text = sweep_file_text(settings);
    std::error_code error;
    if (fs::exists(folder.settings(), error) && file_text(folder.settings()) == text) return;
    write_whole_file(folder.settings(), text, true);
}

bool has_failure(const std::vector<SweepOutcome>& outcomes) {
    return std::ranges::any_of(outcomes, [](const auto& one) { return one.state == SweepOutcome::State::failed; });
}

int predict(const Arguments& arguments, const SweepFolder& folder, const std::vector<SweepTrace>& traces,
            const std::stop_token& stop) {
    const auto predictions = predict_sweep(folder, traces, arguments.n_processes, stop);
    arguments.format.print(table_of_predictions(traces, predictions, arguments.n_processes));
    const bool fails = std::ranges::any_of(
        predictions, [](const auto& one) { return one.outcome.state == SweepOutcome::State::failed; });
    return fails ? 1 : 0;
}

int act(Arguments& arguments) {
    find_file_and_folder(arguments);
    const auto settings = with_command_line(read_sweep_file(arguments.file), arguments.given);
    const auto traces = traces_of_sweep(settings);
    const SweepFolder folder(arguments.folder);
    SweepRunOptions options{arguments.n_processes, std::nullopt, arguments.joined_shards, arguments.quiet};
    if (!arguments.shard.empty()) options.shard = shard_from_text(arguments.shard);
    StopSignals signals;
    signals.set_last_words("stopped; finished runs are kept, and the same command continues");
    try {
        if (arguments.is_dry_run) return predict(arguments, folder, traces, signals.stop_token());
        write_settings(folder, settings);
        const auto outcomes = run_sweep(folder, traces, options, signals.stop_token());
        if (!arguments.quiet) arguments.format.print(table_of_outcomes(traces, outcomes));
        return has_failure(outcomes) ? 1 : 0;
    } catch (const Stopped&) {
        throw std::runtime_error(arguments.is_dry_run
                                     ? "stopped; nothing was written"
                                     : "stopped; finished runs are kept, and the same command continues");
    }
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    app.add_option(
           "sweep", arguments->file,
           "YAML file of options of `kvscope run` or `eval` with their values, or the folder of an earlier sweep")
        ->required()
        ->type_name("SWEEP.yaml|FOLDER");
    app.add_option("-o,--output", arguments->folder, "Folder for the traces (default: the file's name without .yaml)")
        ->type_name("FOLDER");
    app.add_flag(
        "--dry-run", arguments->is_dry_run,
        "Print the traces, runs and tokens, and the time, memory and disk space predicted from one short prompt "
        "of each trace");
    app.add_option(
           "-j,--jobs", arguments->n_processes,
           "Number of processes at once, which share the threads and the GPUs. With fewer traces, each trace is "
           "divided into shards")
        ->check(WholeNumber(1, most_processes))
        ->capture_default_str();
    auto* shard = app.add_option("--shard", arguments->shard,
                                 "Run only part I of N of each trace. auto: the task of a Slurm job array")
                      ->type_name("I/N|auto");
    app.add_option("--join", arguments->joined_shards, "Run nothing; join the N shards of each trace")
        ->check(WholeNumber(1, trace::most_shards))
        ->type_name("N")
        ->excludes(shard);
    app.add_flag("-q,--quiet", arguments->quiet, "Hide progress and the table of traces");
    arguments->format.declare(app);
    declare_trace_options(app, arguments->given);
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::sweep_file

namespace kvscope::cli {

Command sweep_command() {
    using namespace sweep_file;
    return {"sweep", "Run a grid of models, tasks, policies, budgets and seeds that a YAML file describes",
            "  kvscope sweep sweep.yaml -o results --dry-run\n"
            "  kvscope sweep sweep.yaml -o results --jobs 2\n"
            "  kvscope sweep results   # continues, or repeats failed traces",
            declare};
}

}  // namespace kvscope::cli
