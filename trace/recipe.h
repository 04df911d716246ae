// Recipes: the attribute `recipe_json`, which describes what a complete trace contains.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "common/json.h"
#include "trace/records/records.h"

namespace kvscope::trace {

/// Whether a trace with the recipe `part` can be extended to the recipe `whole`. Both recipes must list prompts and
/// runs. `whole` must contain all prompts of `part`, begin with the runs of `part`, and be equal otherwise.
[[nodiscard]] bool can_extend_recipe_to(nlohmann::json part, nlohmann::json whole);
[[nodiscard]] bool can_extend_recipe_to(const std::string& part_json, const std::string& whole_json);

/// Whether two recipes are equal. The evidence of prompts is not compared, because the rest of a recipe determines it,
/// and recipes of earlier versions lack it.
[[nodiscard]] bool are_equal_recipes(nlohmann::json a, nlohmann::json b);

/// Returns the value of a recipe's key for messages, e.g. "16" or "--record rows"; "" for texts of more than 40 bytes.
/// @param value null if the recipe lacks the key
[[nodiscard]] std::string short_setting(std::string_view key, const nlohmann::json& value);

/// Sets `stored` in a recipe of an earlier version, which named the stored amount in the key `record`.
void name_stored_amount(nlohmann::json& recipe);

/// Describes the first few differences to the recipe of a trace or folder, e.g. " (it differs in seed: existing 0,
/// requested 1; the command omits the prompt 'report')" or " (it was written by eval; run cannot extend it)". Returns
/// "" if a recipe is unreadable.
[[nodiscard]] std::string recipe_difference(nlohmann::json recipe, const std::filesystem::path& trace);
/// Returns the recipe of a complete trace or of a folder `<output>.part`, or "" if no recipe can be read.
[[nodiscard]] std::string read_recipe_of_trace(const std::filesystem::path& path);

/// Sets device and instructions of a run of an earlier version, which recorded them in the recipe only.
void add_origin_of_recipe(RunAttributes& run, const nlohmann::json& recipe);

}  // namespace kvscope::trace
