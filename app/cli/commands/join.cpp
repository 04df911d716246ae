#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/stop_signal.h"
#include "app/cli/terminal.h"
#include "app/program/version.h"
#include "common/counted.h"
#include "common/stopped.h"
#include "trace/join_shards.h"
#include "trace/shard.h"

namespace kvscope::cli::join_file {
namespace {

namespace fs = std::filesystem;

struct Arguments {
    std::vector<fs::path> shards;
    fs::path output;
    bool force = false;
    bool quiet = false;
};

/// A shell passes on a pattern that matches no file.
void refuse_pattern_without_files(const std::vector<fs::path>& shards) {
    for (const fs::path& shard : shards) {
        std::error_code error;
        if (shard.native().find_first_of("*?[") != std::string::npos && !fs::exists(shard, error))
            throw std::runtime_error(fmt::format(
                "{}: no file matches this pattern: correct it, or run the command with --shard first", shard.string()));
    }
}

fs::path output_of(const Arguments& arguments) {
    if (!arguments.output.empty()) return arguments.output;
    const fs::path& first = arguments.shards.front();
    if (const auto output = trace::output_of_shard_file(first)) return *output;
    if (std::error_code error; !fs::exists(first, error)) throw std::runtime_error(first.string() + " does not exist");
    throw std::invalid_argument(
        fmt::format("{} is not named like t.shard-1-of-4.h5: choose the output with -o", first.string()));
}

/// Prints a line every few seconds.
class Progress {
 public:
    explicit Progress(bool quiet) : quiet_(quiet) {}

    void show(std::int64_t done, std::int64_t all) {
        const auto now = std::chrono::steady_clock::now();
        if (quiet_ || now - shown_ < std::chrono::seconds(5)) return;
        shown_ = now;
        print_to_stderr(fmt::format("joining: {}/{} prompts", done, all));
    }

 private:
    bool quiet_;
    std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
};

int act(const Arguments& arguments) {
    refuse_pattern_without_files(arguments.shards);
    const fs::path output = output_of(arguments);
    StopSignals signals;
    signals.set_last_words("stopped; nothing was written");
    Progress progress(arguments.quiet);
    try {
        const auto joined =
            trace::join_shards(arguments.shards, output,
                               {.force = arguments.force,
                                .generator = fmt::format("kvscope {}", program::version()),
                                .stop = signals.stop_token(),
                                .on_prompts = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); }});
        if (arguments.quiet) return 0;
        if (joined.was_complete) {
            print_to_stderr(output.string() + " already contains these prompts and runs: nothing to do");
            return 0;
        }
        if (joined.origins.size() > 1) {
            std::string note = "the shards were computed by different devices or versions, which round differently:";
            for (const auto& [origin, shards] : joined.origins)
                note += fmt::format("\n  {}: shard {}", origin, fmt::join(shards, ", "));
            print_to_stderr(note);
        }
        print_to_stderr(fmt::format("{} written: {} from {} shards", output.string(),
                                    counted(joined.n_prompts, joined.has_samples ? "sample" : "prompt"),
                                    joined.n_shards));
        return 0;
    } catch (const Stopped&) {
        throw std::runtime_error("stopped; nothing was written");
    }
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    app.add_option("shards", arguments->shards, "Traces of all shards of a job, in any order")
        ->type_name("SHARD.h5…")
        ->required();
    app.add_option("-o,--output", arguments->output, "Trace to write (default: the shards' name without .shard-I-of-N)")
        ->type_name("TRACE.h5");
    app.add_flag("--force", arguments->force, "Replace an existing output");
    app.add_flag("-q,--quiet", arguments->quiet, "Hide progress and notes");
    return [arguments] { return act(*arguments); };
}

}  // namespace
}  // namespace kvscope::cli::join_file

namespace kvscope::cli {

Command join_command() {
    using namespace join_file;
    return {"join", "Join the traces of `run --shard` or `eval --shard` into one trace",
            "  kvscope join texts.shard-*-of-4.h5\n  kvscope join texts.shard-*-of-4.h5 -o all.h5", declare};
}

}  // namespace kvscope::cli
