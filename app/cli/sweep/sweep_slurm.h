#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/tables/table.h"
#include "app/cli/sweep/sweep_folder.h"

namespace kvscope::cli {

struct SlurmOptions {
    std::string partition, gres, time;  ///< as for sbatch; empty for Slurm's defaults
    std::vector<std::string> others{};  ///< further arguments of sbatch, such as "--account=x"
    std::optional<int> array_size{};    ///< number of shards of each trace; by default that of the folder, or 8
};

/// A sweep as a Slurm job array: task I runs shard I of each trace. A dependent job joins the shards. logs/slurm.json
/// contains the number of shards and the ids of the submitted jobs.
class SlurmSweep {
 public:
    /// @throws std::invalid_argument if the folder has another number of shards
    SlurmSweep(const SweepFolder& folder, std::span<const SweepTrace> traces, SlurmOptions options);

    [[nodiscard]] int n_shards() const { return n_shards_; }
    /// Returns the job script of the array.
    [[nodiscard]] std::string script() const;
    /// Submits the unfinished shards that Slurm neither runs nor has in its queue, and the job that joins.
    /// @returns lines about what was submitted, with the reasons of earlier failures
    /// @throws std::runtime_error if Slurm's programs fail
    [[nodiscard]] std::vector<std::string> submit();
    /// Returns a table with a row per shard and per joined trace; for a sweep that was not submitted, a row per trace.
    [[nodiscard]] analysis::Table status() const;
    /// Cancels all submitted jobs. @returns a line about them
    [[nodiscard]] std::string cancel() const;

 private:
    struct ShardState {
        std::string state;  ///< finished, running, waiting, failed or "not submitted"
        std::string reason;
    };

    struct Queue {
        std::vector<std::vector<std::string>> tasks;  ///< Slurm's state and reason of each known task, by shard
        std::vector<std::string> arrays;              ///< ids of the jobs that Slurm knows
    };

    [[nodiscard]] std::string directives(const std::string& name, const std::string& log) const;
    [[nodiscard]] std::string join_script() const;
    [[nodiscard]] ShardState state_of(const SweepPart& part, std::span<const std::string> task) const;
    [[nodiscard]] Queue query_tasks() const;
    /// Whether a shard of the array has begun, also without submit().
    [[nodiscard]] bool has_attempts() const;
    void write_jobs() const;

    const SweepFolder& folder_;
    std::span<const SweepTrace> traces_;
    SlurmOptions options_;
    int n_shards_ = 0;
    std::vector<std::string> arrays_{}, joins_{};  ///< ids of submitted jobs, oldest first
};

}  // namespace kvscope::cli
