#pragma once

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "app/cli/sweep/sweep_folder.h"

namespace kvscope::cli {

struct SweepRunOptions {
    int n_processes = 1;                  ///< at once
    std::optional<trace::Shard> shard{};  ///< if set, only this shard of each trace is run, and nothing is joined
    int joined_shards = 0;  ///< if above 0, nothing is run, and this number of shards of each trace is joined
    bool quiet = false;
};

struct SweepOutcome {
    enum class State { finished, was_finished, failed };
    State state = State::finished;
    std::string reason;                   ///< why it failed, or a remark on failed runs
    double seconds = 0;                   ///< of all processes of the trace
    std::optional<trace::Shard> shard{};  ///< set if only this shard was run
};

/// Runs the unfinished traces of a sweep as processes of this program, and joins shards. A failing trace fails alone.
/// @returns one outcome per trace @throws Stopped; FileNotWritten
[[nodiscard]] std::vector<SweepOutcome> run_sweep(const SweepFolder& folder, std::span<const SweepTrace> traces,
                                                  const SweepRunOptions& options, const std::stop_token& stop);

}  // namespace kvscope::cli
