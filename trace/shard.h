// Shards: parts of a job that run as separate commands, each with a trace of its own, e.g. t.shard-2-of-4.h5.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/json.h"

namespace kvscope::trace {

inline constexpr int most_shards = 100'000;

struct Shard {
    int number = 1;  ///< from 1
    int of = 1;
    [[nodiscard]] bool operator==(const Shard&) const = default;
};

namespace recipe_keys {
/// {"number": 2, "of": 4}. The recipe's prompts are those of the shard.
inline constexpr const char* shard = "shard";
/// {"sha256": hash_of_job(), "prompts": number of prompts of the job, "contexts": number of their separate prefills,
/// "numbers": numbers of the shard's prompts in the job, ascending}
inline constexpr const char* job = "job";
}  // namespace recipe_keys

/// Returns the shard of a trace's recipe, or nullopt if the recipe describes a whole job.
[[nodiscard]] std::optional<Shard> shard_of_recipe(const nlohmann::json& recipe);

/// Returns "t.shard-2-of-4.h5" for the output "t.h5".
[[nodiscard]] std::filesystem::path file_of_shard(const std::filesystem::path& output, Shard shard);
/// Returns "t.h5" for "t.shard-2-of-4.h5", or nullopt for other names.
[[nodiscard]] std::optional<std::filesystem::path> output_of_shard_file(const std::filesystem::path& file);

/// Returns a hash of a prompt's entry in a recipe.
[[nodiscard]] std::string digest_of_prompt(nlohmann::json entry);
/// Returns a hash of a job's recipe. All shards of a job have the same hash, on every device. The order of the prompts
/// does not affect the hash. @param recipe of the job or of one of its shards. Its prompts are ignored
[[nodiscard]] std::string hash_of_job(nlohmann::json recipe, std::vector<std::string> digests_of_prompts);

/// Removes the keys that can differ between shards of a job: prompts, shard, job, device and instructions.
void erase_keys_of_shard(nlohmann::json& recipe);

}  // namespace kvscope::trace
