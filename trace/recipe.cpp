#include "trace/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "common/bounded_json.h"
#include "trace/group_locations.h"
#include "trace/hdf5/hdf5.h"
#include "trace/part_folder.h"
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

/// Returns the value as text, e.g. "16", or an empty string if the text is too long for a message.
std::string shorten_json_value(const nlohmann::json& value) {
    constexpr size_t most_characters = 40;
    const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return text.size() > most_characters ? "" : text;
}

/// Describes a JSON Patch operation on `there`: "new_tokens: existing 16, requested 32", or just the key of long
/// values.
std::string change_in_words(const nlohmann::json& there, const nlohmann::json& change) {
    const std::string path = change.at("path"), operation = change.at("op");
    const std::string is =
        operation == "add" ? "nothing" : shorten_json_value(there.at(nlohmann::json::json_pointer(path)));
    const std::string wanted = operation == "remove" ? "nothing" : shorten_json_value(change.at("value"));
    const bool is_behind_the_last = path.ends_with("/-");
    const std::string name = path.substr(1, path.size() - (is_behind_the_last ? 3 : 1));
    return is.empty() || wanted.empty() ? name : fmt::format("{}: existing {}, requested {}", name, is, wanted);
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

std::string recipe_difference(const nlohmann::json& recipe, const std::filesystem::path& trace, bool may_extend) {
    constexpr size_t most_named = 3;
    nlohmann::json there;
    try {
        const h5::Guard guard;
        const auto folder = std::filesystem::is_directory(trace) ? read_folder_record(trace) : std::nullopt;
        there = bounded_json::parse_or_discard(folder ? folder->recipe_json : Source(trace).root.recipe_json);
    } catch (const TraceError&) {
        return {};
    }
    if (!there.is_object() || !recipe.is_object()) return {};
    std::vector<std::string> named;
    auto changes = nlohmann::json::diff(there, recipe);
    const auto adds_to_a_list = [](const nlohmann::json& change) {
        return change.at("path").get<std::string>().ends_with("/-");
    };
    if (may_extend) changes.erase(std::remove_if(changes.begin(), changes.end(), adds_to_a_list), changes.end());
    for (const auto& change : changes) {
        if (named.size() == most_named) break;
        named.push_back(change_in_words(there, change));
    }
    if (named.empty()) return {};
    const size_t left = changes.size() - named.size();
    return fmt::format(" (it differs in {}{})", fmt::join(named, "; "),
                       left > 0 ? fmt::format("; and {} more", left) : "");
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
