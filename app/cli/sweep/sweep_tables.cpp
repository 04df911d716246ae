#include "app/cli/sweep/sweep_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "analysis/tables/table_format.h"
#include "app/cli/engine/temporary_folder.h"
#include "app/cli/engine/terminal_progress.h"
#include "app/cli/sweep/child_processes.h"
#include "kernels/threads/team.h"

namespace kvscope::cli {
namespace {

namespace fs = std::filesystem;
using State = SweepOutcome::State;

/// Returns "finished", or "shard 1 of 2 finished" if only a shard was run.
std::string text_of_state(State state, std::optional<trace::Shard> shard = std::nullopt) {
    if (state == State::failed) return "failed";
    const std::string text = state == State::was_finished ? "was finished" : "finished";
    return shard ? fmt::format("shard {} of {} {}", shard->number, shard->of, text) : text;
}

}  // namespace

std::vector<PredictedTrace> predict_sweep(const SweepFolder& folder, std::span<const SweepTrace> traces,
                                          int n_processes, const std::stop_token& stop) {
    const TemporaryFolder temporary;
    const std::vector<std::string> environment = {
        fmt::format("OMP_NUM_THREADS={}", std::max(1, kernels::threads() / n_processes))};
    std::vector<PredictedTrace> predictions;
    ChildProcesses children({});
    for (const SweepTrace& trace : traces) {
        PredictedTrace& predicted = predictions.emplace_back();
        if (folder.is_finished({&trace})) {
            predicted.outcome.state = State::was_finished;
            continue;
        }
        const fs::path file = temporary.path() / (trace.name + ".json");
        auto arguments = trace.arguments;
        arguments.push_back("--output=" + folder.trace_file(trace).string());
        arguments.push_back("--prediction=" + file.string());
        children.start(0, arguments, environment, temporary.path() / "log");
        const ChildEnd end = children.wait(stop);
        if (end.exit_code == 0)
            predicted.prediction = read_prediction(file);
        else
            predicted.outcome = {State::failed, end.reason};
    }
    return predictions;
}

analysis::Table table_of_predictions(std::span<const SweepTrace> traces, std::span<const PredictedTrace> predictions,
                                     int n_processes) {
    using analysis::ColumnType;
    analysis::Table table{"sweep",
                          "Sweep",
                          {{"trace", "Trace", ""},
                           {"state", "State", ""},
                           {"prompts", "Prompts", "", ColumnType::integer},
                           {"runs", "Runs of each", "", ColumnType::integer},
                           {"tokens", "Tokens", "", ColumnType::integer},
                           {"seconds", "Time", "s", ColumnType::real, 1},
                           {"memory_bytes", "Memory", "bytes", ColumnType::integer},
                           {"trace_bytes", "Trace size", "bytes", ColumnType::integer},
                           {"reason", "Reason", ""}},
                          {}};
    JobPrediction all;
    int64_t n_left = 0, n_runs = 0;
    for (size_t i = 0; i < traces.size(); ++i) {
        const auto& [outcome, prediction] = predictions[i];
        const bool is_left = prediction.has_value();
        analysis::Row row{{traces[i].name, is_left ? "to run" : text_of_state(outcome.state)}};
        if (is_left) {
            for (const int64_t number : {prediction->n_prompts, prediction->n_runs, prediction->n_tokens})
                row.cells.emplace_back(number);
            row.cells.emplace_back(prediction->seconds);
            row.cells.emplace_back(static_cast<int64_t>(prediction->memory_bytes));
            row.cells.emplace_back(static_cast<int64_t>(prediction->trace_bytes));
            ++n_left;
            n_runs += prediction->n_prompts * prediction->n_runs;
            all.n_tokens += prediction->n_tokens;
            all.seconds += prediction->seconds;
            all.memory_bytes = std::max(all.memory_bytes, prediction->memory_bytes);
            all.trace_bytes += prediction->trace_bytes;
        } else {
            row.cells.resize(8);
        }
        row.cells.emplace_back(outcome.reason);
        table.rows.push_back(std::move(row));
    }
    table.note =
        fmt::format("{} to run: {} runs, {} tokens, traces of {}; about {} with {} at once, and {} of memory for each",
                    n_left == 1 ? "1 trace" : fmt::format("{} traces", n_left), analysis::format_count(n_runs),
                    analysis::format_count(all.n_tokens), analysis::format_bytes(all.trace_bytes),
                    clock_text(all.seconds / n_processes),
                    n_processes == 1 ? "1 process" : fmt::format("{} processes", n_processes),
                    analysis::format_bytes(all.memory_bytes));
    return table;
}

analysis::Table table_of_outcomes(std::span<const SweepTrace> traces, std::span<const SweepOutcome> outcomes) {
    analysis::Table table{"sweep",
                          "Sweep",
                          {{"trace", "Trace", ""},
                           {"state", "State", ""},
                           {"runs", "Runs of each prompt", "", analysis::ColumnType::integer},
                           {"seconds", "Time", "s", analysis::ColumnType::real, 1},
                           {"reason", "Reason", ""}},
                          {}};
    for (size_t i = 0; i < traces.size(); ++i)
        table.rows.push_back({{traces[i].name, text_of_state(outcomes[i].state, outcomes[i].shard),
                               static_cast<int64_t>(traces[i].n_runs), outcomes[i].seconds, outcomes[i].reason}});
    return table;
}

}  // namespace kvscope::cli
