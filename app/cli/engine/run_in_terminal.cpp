#include "app/cli/engine/run_in_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/runs/task_scores.h"
#include "analysis/tables/table_format.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/inspect_trace.h"
#include "app/cli/terminal.h"
#include "app/figures/same_file.h"
#include "app/program/engine/trace_size.h"
#include "common/file_text.h"
#include "common/hidden_question.h"
#include "common/json.h"
#include "common/whole_file.h"
#include "engine/common/engine_error.h"
#include "kernels/cpu_features.h"
#include "trace/part_folder.h"
#include "trace/reader.h"

namespace kvscope::cli {
namespace {

constexpr std::string_view timings_begin = "{\n  \"n_prompt\":";  // start of every file of timings

/// Checks that --timings replaces only a file of timings, even with --force.
void check_timings(const std::filesystem::path& timings, const std::filesystem::path& output) {
    if (timings.empty()) return;
    for (const auto& other : {output, trace::part_folder_of(output)})
        if (figures::are_same_file(other, timings))
            throw std::invalid_argument(
                fmt::format("--timings {}: the trace is written to this file; name another file", timings.string()));
    std::error_code error;
    if (!std::filesystem::is_regular_file(timings, error)) return;
    std::ifstream in(timings, std::ios::binary);
    std::string begin(timings_begin.size(), '\0');
    in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    const bool is_empty = in.gcount() == 0;
    if (!is_empty && begin != timings_begin) refuse_existing(timings);
}

void write_timings(const std::filesystem::path& path, const engine::Timings& timings, double load_s) {
    const nlohmann::ordered_json json = {{"n_prompt", timings.n_prompt_tokens}, {"n_runs", timings.n_runs},
                                         {"n_generated", timings.n_generated},  {"load_s", load_s},
                                         {"prefill_s", timings.prefill_s},      {"observe_s", timings.record_s},
                                         {"select_s", timings.select_s},        {"question_s", timings.question_s},
                                         {"decode_s", timings.decode_s},        {"step_kl_s", timings.compare_s},
                                         {"write_s", timings.write_s},          {"total_s", timings.total_s}};
    write_whole_file(path, json.dump(2) + "\n", true);
}

/// Adds what was left out before the job, and writes the outcome of a complete trace for --outcome.
program::RunOutcome complete_outcome(program::RunOutcome outcome, const TerminalOptions& options) {
    outcome.n_left_out += options.n_unusable;
    if (options.outcome.empty()) return outcome;
    const nlohmann::ordered_json json = {{"n_failed", outcome.n_failed}, {"n_left_out", outcome.n_left_out}};
    write_whole_file(options.outcome, json.dump(2) + "\n", true);
    return outcome;
}

/// Reports which of several prompts is running, how long the previous prompt took, and the remaining time.
class Batch {
 public:
    explicit Batch(TerminalProgress& progress) : progress_(progress) {}

    void set_prompts(std::span<const engine::Prompt> prompts) {
        for (const auto& prompt : prompts) prompts_.push_back({prompt.name, prompt.n_visible()});
    }

    void begin(int number, double seconds_left) {
        if (prompts_.size() < 2) return;
        if (begun_) tell_finished(fmt::format("; about {} remaining", clock_text(seconds_left)));
        begun_ = static_cast<size_t>(number);
        begun_at_ = std::chrono::steady_clock::now();
        progress_.set_part(fmt::format("{}/{}", *begun_ + 1, prompts_.size()));
    }

    /// Reports the last prompt.
    void end() {
        if (begun_) tell_finished("");
        begun_.reset();
    }

    void tell_budgets(const std::vector<std::string>& lines) const {
        const bool is_alone = std::ranges::all_of(
            prompts_, [&](const auto& prompt) { return prompt.n_visible == prompts_.front().n_visible; });
        for (const auto& line : lines)
            progress_.message(is_alone ? line : fmt::format("{}, {}", prompts_.front().name, line));
        if (!is_alone && !lines.empty())
            progress_.message(fmt::format(
                "Counts and shares above are for {}; they differ for the other prompts, which have other lengths.",
                prompts_.front().name));
    }

 private:
    struct OfPrompt {
        std::string name;
        int64_t n_visible = 0;
    };

    void tell_finished(const std::string& remaining) {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun_at_;
        progress_.message(fmt::format("{}/{} {}: {:.1f} s{}", *begun_ + 1, prompts_.size(), prompts_[*begun_].name,
                                      seconds.count(), remaining));
    }

    TerminalProgress& progress_;
    std::vector<OfPrompt> prompts_;
    std::optional<size_t> begun_;  ///< number of the running prompt
    std::chrono::steady_clock::time_point begun_at_;
};

std::string model_line(const engine::Model& model) {
    const auto& device = model.device();
    return fmt::format("{} in {} on {}", model.attributes().name, kernels::name_of(model.dtype()),
                       device.is_processor() ? fmt::format("the CPU ({})", kernels::name_of(kernels::simd_level()))
                                             : device.backend->name());
}

}  // namespace

void declare_outcome(CLI::App& app, TerminalOptions& options) {
    app.add_option("--outcome", options.outcome,
                   "Write the numbers of failed runs and left-out prompts of the complete trace to this file")
        ->type_name("FILE.json")
        ->group("");
}

std::optional<std::string> read_remark_on_outcome(const std::filesystem::path& file) {
    try {
        const auto json = nlohmann::json::parse(file_text(file));
        const auto n_failed = json.at("n_failed").get<size_t>(), n_left_out = json.at("n_left_out").get<size_t>();
        std::string remark;
        if (n_failed > 0) remark = n_failed == 1 ? "1 run failed" : fmt::format("{} runs failed", n_failed);
        if (n_left_out > 0)
            remark += fmt::format("{}{} left out", remark.empty() ? "" : ", ",
                                  n_left_out == 1 ? "1 prompt is" : fmt::format("{} prompts are", n_left_out));
        return remark;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

program::RunOutcome run_with_progress(const program::RunJob& job, const TerminalOptions& options) {
    const auto plans = program::run_plans_of_job(job);
    if (const std::string problem = engine::find_option_problem(job.experiment); !problem.empty())
        throw std::invalid_argument(problem);
    program::check_prompt_trace_is_readable(job);
    check_timings(options.timings, job.output);
    TerminalProgress progress(options.quiet, make_stop_message_function(job.output));
    for (const auto& line : program::settings_without_effect(job)) progress.warning(line);
    const auto load_start = std::chrono::steady_clock::now();
    program::PreparedJob prepared;
    std::optional<engine::Model> opened;
    try {
        opened.emplace(run_unless_stopped(job.output, [&] {
            return options.model.open(progress, [&](const engine::Model& found) {
                prepared = program::prepare_job(job, plans, found, progress.stop_token());
                program::check_job(prepared, found);
            });
        }));
    } catch (const program::EmptyShard& empty) {
        for (const std::string& reason : empty.left_out) progress.warning(program::left_out_warning(job, reason));
        progress.warning(empty.what());
        return complete_outcome(
            {.was_complete = true, .n_left_out = empty.left_out.size(), .timings = {}, .is_empty_shard = true},
            options);
    }
    const engine::Model& model = *opened;
    if (job.shard)
        progress.message(fmt::format("shard {} of {}: {} {}", job.shard->number, job.shard->of, prepared.prompts.size(),
                                     job.task ? "samples" : "prompts"));
    const double load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - load_start).count();
    Batch batch(progress);
    program::RunEvents events;
    events.on_warning = [&](const std::string& text) { progress.warning(text); };
    events.on_prompts = [&](std::span<const engine::Prompt> prompts) {
        progress.message(model_line(model));
        if (!job.profile)
            progress.message(fmt::format("predicted size of the trace: {}",
                                         analysis::format_bytes(program::predicted_trace_bytes(prepared, model))));
        if (job.task) return;  // a task has many samples
        for (const auto& prompt : prompts) {
            progress.message(fmt::format("{}: {} tokens{}", prompt.name, prompt.ids.size(),
                                         prompt.query_aware ? "" : fmt::format(", policies see {}", prompt.n_context)));
        }
        batch.set_prompts(prompts);
        batch.tell_budgets(program::budget_lines(plans, prompts.front(), model.transformer()));
    };
    events.on_prompt_begun = [&](int prompt, double seconds_left) { batch.begin(prompt, seconds_left); };
    events.on_end = [&](engine::Experiment&) {
        progress.set_part("");
        if (!std::current_exception()) batch.end();  // on_end is called in the handler of an exception, too
    };
    events.on_sample = [&](size_t i, std::span<const trace::ResultRow> rows, double seconds, double seconds_left) {
        std::string verdict;
        if (analysis::is_graded(rows[0])) {
            verdict = fmt::format("score of full {:.3f}, ", rows[0].score);
        } else if (!std::isnan(rows[0].score)) {
            const auto n_right =
                std::count_if(rows.begin() + 1, rows.end(), [](const auto& row) { return row.score > 0.5; });
            verdict = fmt::format("full {}, ", rows[0].score > 0.5 ? "correct"
                                               : job.profile       ? "wrong, not counted"
                                                                   : "wrong");
            if (rows.size() > 1) verdict += fmt::format("{} of {} other runs correct, ", n_right, rows.size() - 1);
        }
        const auto& sample = prepared.samples[i];
        progress.message(fmt::format(
            "{}/{} {}{}: {}{:.1f} s{}", i + 1, prepared.samples.size(), sample.id,
            prepared.job.asks_in_both_ways && !sample.prompt.query_aware ? hidden_question_suffix : "", verdict,
            seconds, seconds_left > 0 ? fmt::format("; about {} remaining", clock_text(seconds_left)) : ""));
    };
    return run_unless_stopped(job.output, [&] {
        auto outcome = program::run_job(prepared, model, progress, events);
        if (!outcome.was_complete && !options.timings.empty()) write_timings(options.timings, outcome.timings, load_s);
        return complete_outcome(outcome, options);
    });
}

int run_in_terminal(const program::RunJob& job, const TerminalOptions& options) {
    const auto outcome = run_with_progress(job, options);
    if (outcome.is_empty_shard) return outcome.n_left_out > 0 ? 1 : 0;
    if (!options.quiet) print(tables_of_runs_and_answers(trace::Reader(job.output)));
    if (outcome.n_failed == 0) return outcome.n_left_out > 0 ? 1 : 0;
    print_to_stderr(
        fmt::format("kvscope inspect {} --commands prints a command that repeats each failed run; --force repeats "
                    "the whole trace",
                    job.output.string()));
    return 1;
}

}  // namespace kvscope::cli
