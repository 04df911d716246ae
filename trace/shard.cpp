#include "trace/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "common/sha256.h"

namespace kvscope::trace {

namespace {

constexpr std::string_view infix = ".shard-";

bool is_number_of_number(std::string_view text) {
    constexpr std::string_view between = "-of-";
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, number);
    if (first.ec != std::errc() || !std::string_view(first.ptr, end).starts_with(between)) return false;
    const auto second = std::from_chars(first.ptr + between.size(), end, number);
    return second.ec == std::errc() && second.ptr == end;
}

}  // namespace

std::optional<Shard> shard_of_recipe(const nlohmann::json& recipe) {
    if (!recipe.is_object() || !recipe.contains(recipe_keys::shard)) return std::nullopt;
    try {
        const nlohmann::json& entry = recipe[recipe_keys::shard];
        const Shard shard{entry.at("number").get<int>(), entry.at("of").get<int>()};
        if (shard.number >= 1 && shard.number <= shard.of && shard.of <= most_shards) return shard;
    } catch (const nlohmann::json::exception&) {
        // The entry does not have the format of kvscope.
    }
    return std::nullopt;
}

std::filesystem::path file_of_shard(const std::filesystem::path& output, Shard shard) {
    return output.parent_path() / fmt::format("{}{}{}-of-{}{}", output.stem().string(), infix, shard.number, shard.of,
                                              output.extension().string());
}

std::optional<std::filesystem::path> output_of_shard_file(const std::filesystem::path& file) {
    const std::string stem = file.stem().string(), extension = file.extension().string();
    const size_t at = stem.rfind(infix);
    // The shard of an output without extension is "t.shard-2-of-4". Its extension is ".shard-2-of-4".
    if (at == std::string::npos) {
        if (!extension.starts_with(infix) || !is_number_of_number(extension.substr(infix.size()))) return std::nullopt;
        return file.parent_path() / stem;
    }
    if (at == 0 || !is_number_of_number(stem.substr(at + infix.size()))) return std::nullopt;
    return file.parent_path() / (stem.substr(0, at) + extension);
}

std::string digest_of_prompt(nlohmann::json entry) {
    entry.erase("rendered");  // the time of the trace from which --prompt-from reads the prompt
    entry.erase("evidence");  // the rest of the recipe determines it
    return sha256_of(entry.dump());
}

void erase_keys_of_shard(nlohmann::json& recipe) {
    for (const char* key : {"prompts", recipe_keys::shard, recipe_keys::job, "device", "instructions"})
        recipe.erase(key);
}

std::string hash_of_job(nlohmann::json recipe, std::vector<std::string> digests_of_prompts) {
    erase_keys_of_shard(recipe);
    std::ranges::sort(digests_of_prompts);  // an extended trace can have another order
    Sha256 hash;
    hash.update(recipe.dump());
    for (const std::string& digest : digests_of_prompts) hash.update(digest);
    return hash.hex_digest();
}

}  // namespace kvscope::trace
