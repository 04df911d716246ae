#pragma once

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/json.h"
#include "trace/shard.h"

namespace kvscope::program {

/// The job has fewer prompts than shards, so this shard has nothing to do. Not an error.
struct EmptyShard : std::runtime_error {
    EmptyShard(const std::string& message, std::vector<std::string> reasons)
        : std::runtime_error(message), left_out(std::move(reasons)) {}
    std::vector<std::string> left_out;  ///< why prompts or samples of the job cannot be run
};

/// The prompts of a job that one shard runs. Every n-th prompt belongs to the same shard, so that lengths mix.
class ShardOfJob {
 public:
    /// @param prefills numbers of prompts that share a prefill and therefore a shard
    /// @param entries recipe entries of all prompts of the job @param left_out for EmptyShard
    /// @throws EmptyShard
    ShardOfJob(trace::Shard shard, std::span<const std::vector<int>> prefills,
               std::span<const nlohmann::ordered_json> entries, const std::vector<std::string>& left_out);

    /// Returns the elements of the shard's prompts.
    template <class T>
    [[nodiscard]] std::vector<T> select(std::vector<T> all) const {
        std::vector<T> selected;
        for (const int number : numbers_) selected.push_back(std::move(all.at(static_cast<std::size_t>(number))));
        return selected;
    }

    /// Adds the shard and a hash of the whole job to the shard's recipe, with which shards are joined.
    [[nodiscard]] std::string complete_recipe(const std::string& recipe_json) const;

 private:
    trace::Shard shard_;
    std::size_t n_prefills_;
    std::vector<int> numbers_;  ///< of the shard's prompts in the job, ascending
    std::vector<std::string> digests_;
};

/// Returns the earliest creation time of the other shards, or nullopt if there are none. Chat templates can contain the
/// date, so all shards use one time.
[[nodiscard]] std::optional<std::time_t> creation_time_of_other_shards(const std::filesystem::path& file,
                                                                       trace::Shard shard);

}  // namespace kvscope::program
