#include "app/cli/sweep/sweep_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "app/cli/engine/run_in_terminal.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/sweep/child_processes.h"
#include "app/cli/terminal.h"
#include "common/split.h"
#include "kernels/threads/team.h"

namespace kvscope::cli {
namespace {

using State = SweepOutcome::State;

/// Returns the numbers of the NVIDIA cards, as in CUDA_VISIBLE_DEVICES.
std::vector<std::string> visible_cards() {
    std::vector<std::string> cards;
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
        for (const std::string_view card : split(visible, ','))
            if (!card.empty()) cards.emplace_back(card);
        return cards;
    }
    std::error_code error;
    for (int i = 0; std::filesystem::exists(fmt::format("/dev/nvidia{}", i), error); ++i)
        cards.push_back(std::to_string(i));
    return cards;
}

bool has_argument(const SweepTrace& trace, std::string_view begin) {
    return std::ranges::any_of(trace.arguments, [&](const std::string& one) { return one.starts_with(begin); });
}

class SweepRunner {
 public:
    SweepRunner(const SweepFolder& folder, std::span<const SweepTrace> traces, const SweepRunOptions& options)
        : folder_(folder),
          traces_(traces),
          options_(options),
          cards_(visible_cards()),
          outcomes_(traces.size()),
          running_(static_cast<size_t>(options.n_processes)),
          children_([this](size_t slot, std::string_view line) {
              if (line.starts_with("kvscope: ")) return;  // reported as the reason when the process ends
              say(fmt::format("{}: {}", running_[slot]->part.name(), line));
          }) {
        for (const SweepTrace& trace : traces) add_steps(trace);
        n_steps_ = queue_.size();
    }

    std::vector<SweepOutcome> run(const std::stop_token& stop) {
        while (!queue_.empty() || children_.n_running() > 0) {
            for (size_t slot = 0; slot < running_.size() && !queue_.empty(); ++slot)
                if (!running_[slot]) start_next(slot);
            finish(children_.wait(stop));
        }
        return outcomes_;
    }

 private:
    struct Step {
        SweepPart part;
        int joined_shards = 0;  ///< if above 0, the step joins shards
        std::chrono::steady_clock::time_point start{};
        SweepAttempt attempt{};
    };

    SweepOutcome& outcome(const SweepPart& part) { return outcomes_[static_cast<size_t>(part.trace - traces_.data())]; }

    void add_steps(const SweepTrace& trace) {
        const SweepPart whole{&trace};
        if (folder_.is_finished(whole)) {
            outcome(whole) = {State::was_finished, reason_of(whole)};
            return;
        }
        if (options_.joined_shards > 0) {
            join_if_complete(trace, options_.joined_shards);
        } else if (options_.shard) {
            const SweepPart part{&trace, options_.shard};
            if (folder_.is_finished(part))
                outcome(part) = {State::was_finished, reason_of(part)};
            else
                queue_.push_back({part});
            outcome(part).shard = options_.shard;
        } else {
            const int n = folder_.begun_shards(trace).value_or(shards_of_new_trace());
            if (n == 1) {
                queue_.push_back({whole});
                return;
            }
            bool is_complete = true;
            for (int number = 1; number <= n; ++number) {
                const SweepPart part{&trace, trace::Shard{number, n}};
                if (folder_.is_finished(part)) continue;
                is_complete = false;
                queue_.push_back({part});
            }
            if (is_complete) queue_.push_back({whole, n});
        }
    }

    /// With fewer traces than processes, each trace is divided, so that no process is idle.
    int shards_of_new_trace() const {
        const int n = options_.n_processes, n_traces = static_cast<int>(traces_.size());
        return n_traces >= n ? 1 : (n + n_traces - 1) / n_traces;
    }

    std::string reason_of(const SweepPart& part) const {
        const auto attempt = folder_.last_attempt(part);
        return attempt ? attempt->reason : "";
    }

    static void append_reason(std::string& reasons, const SweepPart& part, const std::string& reason) {
        if (reason.empty()) return;
        reasons += (reasons.empty() ? "" : "; ") + (part.shard ? part.name() + ": " : "") + reason;
    }

    std::string remarks_on_shards(const SweepTrace& trace, int n) const {
        std::string remarks;
        for (int number = 1; number <= n; ++number) {
            const SweepPart part{&trace, trace::Shard{number, n}};
            append_reason(remarks, part, reason_of(part));
        }
        return remarks;
    }

    void join_if_complete(const SweepTrace& trace, int n) {
        const SweepPart whole{&trace};
        for (int number = 1; number <= n; ++number) {
            const SweepPart part{&trace, trace::Shard{number, n}};
            if (folder_.is_finished(part)) continue;
            const std::string reason = reason_of(part);
            outcome(whole) = {State::failed, fmt::format("shard {} of {} is not finished{}", number, n,
                                                         reason.empty() ? "" : ": " + reason)};
            return;
        }
        queue_.push_back({whole, n});
    }

    std::vector<std::string> arguments_of(const Step& step) const {
        const SweepTrace& trace = *step.part.trace;
        if (step.joined_shards > 0) {
            std::vector<std::string> arguments = {"join", "--output=" + folder_.trace_file(trace).string()};
            if (folder_.last_attempt(step.part)) arguments.emplace_back("--force");  // an earlier join of the sweep
            for (const auto& file : folder_.shard_files(trace, step.joined_shards)) arguments.push_back(file.string());
            return arguments;
        }
        std::vector<std::string> arguments = trace.arguments;
        arguments.push_back("--output=" + folder_.output(step.part).string());
        arguments.push_back("--outcome=" + folder_.outcome(step.part).string());
        if (const auto shard = step.part.shard)
            arguments.push_back(fmt::format("--shard={}/{}", shard->number, shard->of));
        return arguments;
    }

    /// Divides threads and cards among the processes.
    std::vector<std::string> environment_of(const SweepTrace& trace, size_t slot) const {
        std::vector<std::string> variables;
        if (options_.n_processes == 1) return variables;
        if (!has_argument(trace, "--threads="))
            variables.push_back(
                fmt::format("OMP_NUM_THREADS={}", std::max(1, kernels::threads() / options_.n_processes)));
        const bool may_use_card = has_argument(trace, "--device=auto") || has_argument(trace, "--device=cuda");
        if (may_use_card && !has_argument(trace, "--device=cuda:") && !cards_.empty())
            variables.push_back("CUDA_VISIBLE_DEVICES=" + cards_[slot % cards_.size()]);
        return variables;
    }

    void say(const std::string& text) const {
        if (!options_.quiet) print_to_stderr(text);
    }

    void start_next(size_t slot) {
        Step step = std::move(queue_.front());
        queue_.pop_front();
        step.attempt = {step.part.trace->arguments, environment_of(*step.part.trace, slot), std::nullopt, "", 0};
        if (step.joined_shards == 0) {
            folder_.write_attempt(step.part, step.attempt);
            std::error_code error;
            std::filesystem::remove(folder_.outcome(step.part), error);
            say(fmt::format("{}: process {} of {}", step.part.name(), ++n_started_, n_steps_));
        }
        step.start = std::chrono::steady_clock::now();
        children_.start(slot, arguments_of(step), step.attempt.environment, folder_.log(step.part));
        running_[slot] = std::move(step);
    }

    void finish(const ChildEnd& end) {
        Step step = *std::exchange(running_[end.number], std::nullopt);
        step.attempt.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - step.start).count();
        step.attempt.exit_code = end.exit_code;
        step.attempt.reason = end.reason;
        step.attempt.is_complete = end.exit_code == 0;
        SweepOutcome& of_trace = outcome(step.part);
        of_trace.seconds += step.attempt.seconds;
        if (step.joined_shards > 0 && end.exit_code == 0) {
            step.attempt.reason = remarks_on_shards(*step.part.trace, step.joined_shards);
            of_trace.reason.clear();                                 // the remarks contain it
        } else if (end.exit_code == 1 && step.joined_shards == 0) {  // failed runs are no reason to repeat the trace
            if (const auto remark = read_remark_on_outcome(folder_.outcome(step.part))) {
                step.attempt.is_complete = true;
                step.attempt.reason = fmt::format("{}; see {}", *remark, folder_.log(step.part).string());
            }
        }
        folder_.write_attempt(step.part, step.attempt);
        append_reason(of_trace.reason, step.part, step.attempt.reason);
        if (!step.attempt.is_complete) {
            of_trace.state = State::failed;
            print_to_stderr(fmt::format("{} failed: {}", step.part.name(), step.attempt.reason));
            return;
        }
        say(fmt::format("{} finished after {}{}", step.part.name(), clock_text(step.attempt.seconds),
                        step.attempt.reason.empty() ? "" : "; " + step.attempt.reason));
        if (step.part.shard && !options_.shard) join_after_last_shard(*step.part.trace, step.part.shard->of);
    }

    void join_after_last_shard(const SweepTrace& trace, int n) {
        for (int number = 1; number <= n; ++number)
            if (!folder_.is_finished({&trace, trace::Shard{number, n}})) return;
        queue_.push_front({{&trace}, n});
    }

    const SweepFolder& folder_;
    std::span<const SweepTrace> traces_;
    const SweepRunOptions& options_;
    std::vector<std::string> cards_;
    std::vector<SweepOutcome> outcomes_;
    std::deque<Step> queue_;
    std::vector<std::optional<Step>> running_;  ///< by slot
    size_t n_steps_ = 0, n_started_ = 0;
    ChildProcesses children_;
};

}  // namespace

std::vector<SweepOutcome> run_sweep(const SweepFolder& folder, std::span<const SweepTrace> traces,
                                    const SweepRunOptions& options, const std::stop_token& stop) {
    folder.create();
    return SweepRunner(folder, traces, options).run(stop);
}

}  // namespace kvscope::cli
