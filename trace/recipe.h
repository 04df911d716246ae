// Recipes: the attribute `recipe_json`, which says what a trace was asked to hold.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace kvscope::trace {

/// Whether a trace of the recipe `part` can be extended to one of `whole`: `whole` has all of its prompts and, as its
/// first ones and in the same order, all of its runs; everything else in them is equal. False for what is no recipe
/// with prompts and runs.
bool is_part_of_recipe(const nlohmann::json& part, const nlohmann::json& whole);
bool is_part_of_recipe(const std::string& part_json, const std::string& whole_json);

/// The recipe of a complete trace, or of a folder `<output>.part`; empty where there is neither, or where it cannot be
/// read: a Writer says why.
std::string recipe_at(const std::filesystem::path& path);

}  // namespace kvscope::trace
