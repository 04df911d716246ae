#include "app/cli/engine/run_in_terminal.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "app/cli/engine/terminal_progress.h"
#include "app/cli/inspect_trace.h"
#include "app/cli/terminal.h"
#include "engine/common/error.h"
#include "trace/reader.h"

namespace kvscope::cli {
namespace {

void write_timings(const std::filesystem::path& path, const engine::Timings& timings, double load_s) {
    const nlohmann::ordered_json json = {{"n_prompt", timings.n_prompt_tokens}, {"n_runs", timings.n_runs},
                                         {"n_generated", timings.n_generated},  {"load_s", load_s},
                                         {"prefill_s", timings.prefill_s},      {"observe_s", timings.record_s},
                                         {"select_s", timings.select_s},        {"question_s", timings.question_s},
                                         {"decode_s", timings.decode_s},        {"step_kl_s", timings.compare_s},
                                         {"write_s", timings.write_s},          {"total_s", timings.total_s}};
    std::ofstream file(path);
    file << json.dump(2) << '\n';
    file.close();
    if (!file) throw std::runtime_error(path.string() + " cannot be written");
}

}  // namespace

int run_in_terminal(const program::RunJob& job, const TerminalOptions& options) {
    const auto plans = program::plans_of(job);
    program::check_prompt_source(job);
    TerminalProgress progress(options.quiet, stopped_message(job.output));
    const auto load_start = std::chrono::steady_clock::now();
    const auto model = options.model.open(progress, job.experiment.device);
    const double load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - load_start).count();
    program::RunEvents events;
    events.on_warning = [&](const std::string& text) { progress.warning(text); };
    events.on_prompts = [&](std::span<const engine::Prompt> prompts) {
        for (const auto& prompt : prompts) {
            progress.message(fmt::format("{}: {} tokens{}", prompt.name, prompt.ids.size(),
                                         prompt.query_aware ? "" : fmt::format(", policies see {}", prompt.n_context)));
        }
        for (const auto& line : program::budget_lines(plans, prompts.front(), model.transformer())) progress.message(line);
    };
    try {
        const auto outcome = program::run(job, plans, model, progress, events);
        if (!outcome.was_complete && !options.timings.empty()) write_timings(options.timings, outcome.timings, load_s);
        if (!options.quiet) print(results_text(trace::Reader(job.output)));
        if (outcome.n_failed == 0) return 0;
        progress.warning(fmt::format(
            "kvscope inspect {} --commands names a command that tries each again; --force makes the whole trace anew",
            job.output.string()));
        return 1;
    } catch (const engine::Cancelled&) {
        throw std::runtime_error(stopped_message(job.output));
    }
}

}  // namespace kvscope::cli
