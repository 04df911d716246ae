#include "trace/recipe.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "common/bounded_json.h"
#include "trace/group_locations.h"
#include "trace/hdf5/hdf5.h"
#include "trace/records/trace_errors.h"

namespace kvscope::trace {

namespace {

constexpr const char* lists[] = {"prompts", "runs"};

bool has_lists(const nlohmann::json& recipe) {
    return recipe.is_object() && std::all_of(std::begin(lists), std::end(lists), [&](const char* name) {
               return recipe.contains(name) && recipe[name].is_array();
           });
}

std::string recorded_text(const nlohmann::json& recipe, const char* key) {
    const auto found = recipe.is_object() ? recipe.find(key) : recipe.end();
    return found != recipe.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

bool can_extend_recipe_to(const nlohmann::json& part, const nlohmann::json& whole) {
    if (!has_lists(part) || !has_lists(whole)) return false;
    const auto &runs = part["runs"], &all_runs = whole["runs"];
    if (runs.size() > all_runs.size() || !std::equal(runs.begin(), runs.end(), all_runs.begin())) return false;
    auto prompts = part["prompts"], all_prompts = whole["prompts"];
    std::sort(prompts.begin(), prompts.end());
    std::sort(all_prompts.begin(), all_prompts.end());
    if (!std::includes(all_prompts.begin(), all_prompts.end(), prompts.begin(), prompts.end())) return false;
    auto rest = part, all_rest = whole;
    for (const char* name : lists) {
        rest.erase(name);
        all_rest.erase(name);
    }
    return rest == all_rest;
}

bool can_extend_recipe_to(const std::string& part_json, const std::string& whole_json) {
    return can_extend_recipe_to(nlohmann::json(bounded_json::parse_or_discard(part_json)),
                                nlohmann::json(bounded_json::parse_or_discard(whole_json)));
}

std::string read_recipe_of_trace(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return {};
    try {
        const h5::Guard guard;
        const Source source(path);
        return source.is_folder || source.root.complete ? source.root.recipe_json : "";
    } catch (const std::runtime_error&) {
        return {};
    }
}

void add_origin_of_recipe(RunAttributes& run, const nlohmann::json& recipe) {
    if (run.device) return;
    const std::string device = recorded_text(recipe, "device"), instructions = recorded_text(recipe, "instructions");
    if (!instructions.empty()) run.instructions = instructions;
    if (!device.empty())
        run.device = device;
    else if (!instructions.empty())
        run.device = "cpu";
}

}  // namespace kvscope::trace
