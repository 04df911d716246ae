// Joins the traces of a job's shards into the trace that one process would have written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace kvscope::trace {

struct JoinOptions {
    bool force = false;  ///< replaces any trace at the output path
    std::string generator = "kvscope";
    std::stop_token stop{};
    std::function<void(std::int64_t done, std::int64_t all)> on_prompts{};  ///< called after each prompt
};

struct JoinedShards {
    bool was_complete = false;  ///< the output already contained these prompts and runs
    std::int64_t n_prompts = 0;
    bool has_samples = false;  ///< the prompts are samples of a task
    int n_shards = 0;
    /// Devices, instructions and commits that the rows of results name, with the numbers of their shards.
    std::map<std::string, std::set<int>> origins{};
};

/// Copies prompt by prompt. Apart from the recipe, memory does not grow with the number of prompts. The recipe of the
/// trace is that of the whole job; device and instructions are those of the first shard. The shards stay unchanged.
/// @throws TraceError for missing, repeated or unfinished shards and shards of different jobs; OutputExists,
/// OutputBusy, WriteFailed; ReadFailed, DamagedTrace; Stopped. Then the output is unchanged.
[[nodiscard]] JoinedShards join_shards(const std::vector<std::filesystem::path>& shards,
                                       const std::filesystem::path& output, const JoinOptions& options = {});

}  // namespace kvscope::trace
