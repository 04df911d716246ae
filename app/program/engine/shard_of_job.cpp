#include "app/program/engine/shard_of_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/creation_time.h"

namespace kvscope::program {

ShardOfJob::ShardOfJob(trace::Shard shard, std::span<const std::vector<int>> prefills,
                       std::span<const nlohmann::ordered_json> entries, const std::vector<std::string>& left_out)
    : shard_(shard), n_prefills_(prefills.size()) {
    for (auto i = static_cast<std::size_t>(shard.number - 1); i < prefills.size();
         i += static_cast<std::size_t>(shard.of))
        numbers_.insert(numbers_.end(), prefills[i].begin(), prefills[i].end());
    if (numbers_.empty())
        throw EmptyShard(fmt::format("shard {} of {} has no prompts, because the job has only {}: nothing to do",
                                     shard.number, shard.of, prefills.size()),
                         left_out);
    std::ranges::sort(numbers_);
    for (const auto& entry : entries) digests_.push_back(trace::digest_of_prompt(nlohmann::json(entry)));
}

std::string ShardOfJob::complete_recipe(const std::string& recipe_json) const {
    auto recipe = nlohmann::ordered_json::parse(recipe_json);
    const std::string hash = trace::hash_of_job(nlohmann::json(recipe), digests_);
    recipe[trace::recipe_keys::shard] = {{"number", shard_.number}, {"of", shard_.of}};
    recipe[trace::recipe_keys::job] = {
        {"sha256", hash}, {"prompts", digests_.size()}, {"contexts", n_prefills_}, {"numbers", numbers_}};
    return recipe.dump();
}

std::optional<std::time_t> creation_time_of_other_shards(const std::filesystem::path& file, trace::Shard shard) {
    const auto output = trace::output_of_shard_file(file);
    std::optional<std::time_t> earliest;
    for (int number = 1; output && number <= shard.of; ++number) {
        const auto created = trace::creation_time(trace::file_of_shard(*output, {number, shard.of}));
        if (created && (!earliest || *created < *earliest)) earliest = created;
    }
    return earliest;
}

}  // namespace kvscope::program
