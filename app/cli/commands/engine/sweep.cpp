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
#include "app/cli/sweep/sweep_slurm.h"
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
    bool is_for_slurm = false;
    bool prints_script = false;
    bool is_status = false;
    bool is_cancelled = false;
    SlurmOptions slurm;
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

/// Whether a trace or a run of a trace failed, or a prompt is left out.
bool has_failure(const std::vector<SweepOutcome>& outcomes) {
    return std::ranges::any_of(outcomes, [](const auto& one) { return !one.reason.empty(); });
}

int predict(const Arguments& arguments, const SweepFolder& folder, const std::vector<SweepTrace>& traces,
            const std::stop_token& stop) {
    const auto predictions = predict_sweep(folder, traces, arguments.n_processes, stop);
    arguments.format.print(table_of_predictions(traces, predictions, arguments.n_processes));
    const bool fails = std::ranges::any_of(
        predictions, [](const auto& one) { return one.outcome.state == SweepOutcome::State::failed; });
    return fails ? 1 : 0;
}

bool uses_slurm(const Arguments& arguments) {
    return arguments.is_for_slurm || arguments.prints_script || arguments.is_status || arguments.is_cancelled;
}

void require_slurm_for_its_options(const Arguments& arguments) {
    const SlurmOptions& slurm = arguments.slurm;
    const bool has_any = !slurm.partition.empty() || !slurm.gres.empty() || !slurm.time.empty() ||
                         !slurm.others.empty() || slurm.array_size;
    if (has_any && !arguments.is_for_slurm && !arguments.prints_script)
        throw std::invalid_argument(
            "--partition, --gres, --time, --sbatch and --array-size need --slurm or --print-sbatch");
}

int act_with_slurm(const Arguments& arguments, const SweepFolder& folder, const std::vector<SweepSetting>& settings,
                   const std::vector<SweepTrace>& traces) {
    SlurmSweep slurm(folder, traces, arguments.slurm);
    if (arguments.is_status) {
        arguments.format.print(slurm.status());
    } else if (arguments.is_cancelled) {
        print_to_stderr(slurm.cancel());
    } else {
        write_settings(folder, settings);
        if (arguments.prints_script) {
            print_data(slurm.script());
            print_to_stderr(
                fmt::format("submit the script with sbatch; when its tasks have ended, `kvscope sweep {} "
                            "--join {}` joins the shards",
                            folder.path().string(), slurm.n_shards()));
        } else {
            for (const std::string& line : slurm.submit()) print_to_stderr(line);
        }
    }
    return 0;
}

int act(Arguments& arguments) {
    require_slurm_for_its_options(arguments);
    find_file_and_folder(arguments);
    auto settings = with_command_line(read_sweep_file(arguments.file), arguments.given);
    make_paths_absolute(settings);
    const auto traces = traces_of_sweep(settings);
    const SweepFolder folder(arguments.folder);
    if (uses_slurm(arguments)) return act_with_slurm(arguments, folder, settings, traces);
    SweepRunOptions options{arguments.n_processes, std::nullopt, arguments.joined_shards, arguments.quiet};
    if (!arguments.shard.empty()) options.shard = shard_from_text(arguments.shard);
    StopSignals signals;
    signals.set_last_words("stopped; finished runs are kept, and the same command continues");
    try {
        if (arguments.is_dry_run) return predict(arguments, folder, traces, signals.stop_token());
        write_settings(folder, settings);
        const auto outcomes = run_sweep(folder, traces, options, signals.stop_token());
        if (!arguments.quiet) arguments.format.print(table_of_outcomes(traces, outcomes));
        const bool is_part = std::ranges::any_of(
            outcomes, [](const SweepOutcome& one) { return one.shard && one.state != SweepOutcome::State::failed; });
        if (is_part && !arguments.quiet && options.shard->of > 1)
            print_to_stderr(fmt::format("when all {0} shards are finished, `kvscope sweep {1} --join {0}` joins them",
                                        options.shard->of, folder.path().string()));
        return has_failure(outcomes) ? 1 : 0;
    } catch (const Stopped&) {
        throw std::runtime_error(arguments.is_dry_run
                                     ? "stopped; nothing was written"
                                     : "stopped; finished runs are kept, and the same command continues");
    }
}

void declare_slurm_options(CLI::App& app, Arguments& arguments) {
    SlurmOptions& slurm = arguments.slurm;
    const char* group = "Slurm";
    app.add_flag(
           "--slurm", arguments.is_for_slurm,
           "Submit a job array, whose tasks run the shards of each trace, and a job that joins the shards. Repeated, "
           "submit what failed")
        ->group(group);
    app.add_flag("--status", arguments.is_status, "Print the state of each shard, and why it failed")->group(group);
    app.add_flag("--cancel", arguments.is_cancelled, "Cancel the submitted jobs")->group(group);
    app.add_flag("--print-sbatch", arguments.prints_script, "Print the script of the job array, and submit nothing")
        ->group(group);
    app.add_option("--array-size", slurm.array_size, "Number of tasks of the array, and of shards of each trace")
        ->check(WholeNumber(1, trace::most_shards))
        ->default_str("8")
        ->group(group);
    app.add_option("--partition", slurm.partition, "Slurm's partition")->type_name("NAME")->group(group);
    app.add_option("--gres", slurm.gres, "Devices of each task, such as gpu:1")->type_name("LIST")->group(group);
    app.add_option("--time", slurm.time, "Time limit of each task, such as 4:00:00")->type_name("TIME")->group(group);
    app.add_option("--sbatch", slurm.others, "Another option of sbatch, such as --sbatch=--account=x; repeatable")
        ->type_name("OPTION")
        ->allow_extra_args(false)
        ->group(group);
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
    declare_slurm_options(app, *arguments);
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
            "  kvscope sweep results   # continues, or repeats failed traces\n"
            "  kvscope sweep sweep.yaml -o results --slurm --array-size 16 --gres gpu:1 --time 4:00:00",
            declare};
}

}  // namespace kvscope::cli
