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
#include "trace/shard.h"

namespace kvscope::trace {

namespace {

constexpr const char* lists[] = {"prompts", "runs"};

/// Removes what an extension changes.
void erase_extended_keys(nlohmann::json& recipe) {
    for (const char* name : lists) recipe.erase(name);
    recipe.erase(recipe_keys::job);
}

void erase_evidence(nlohmann::json& recipe) {
    if (!recipe.is_object() || !recipe.contains("prompts")) return;
    for (nlohmann::json& entry : recipe["prompts"])
        if (entry.is_object()) entry.erase("evidence");
}

bool has_lists(const nlohmann::json& recipe) {
    return recipe.is_object() && std::all_of(std::begin(lists), std::end(lists), [&](const char* name) {
               return recipe.contains(name) && recipe[name].is_array();
           });
}

std::string recorded_text(const nlohmann::json& recipe, const char* key) {
    const auto found = recipe.is_object() ? recipe.find(key) : recipe.end();
    return found != recipe.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Describes a JSON Patch operation on `there`: "new_tokens: existing 16, requested 32", or just the key of long
/// values.
std::string change_in_words(const nlohmann::json& there, const nlohmann::json& change) {
    const std::string path = change.at("path"), operation = change.at("op");
    if (path.starts_with("/imported/")) return "imported files";
    const bool is_appended = path.ends_with("/-");
    const std::string name = path.substr(1, path.size() - (is_appended ? 3 : 1));
    const std::string is =
        short_setting(name, operation == "add" ? nlohmann::json() : there.at(nlohmann::json::json_pointer(path)));
    const std::string wanted = short_setting(name, operation == "remove" ? nlohmann::json() : change.at("value"));
    return is.empty() || wanted.empty() ? name : fmt::format("{}: existing {}, requested {}", name, is, wanted);
}

/// Describes up to three differences: "new_tokens: existing 16, requested 32; text; and 2 more". Empty if equal.
std::string differences(const nlohmann::json& there, const nlohmann::json& wanted) {
    constexpr size_t most_named = 3;
    std::vector<std::string> named;
    for (const auto& change : nlohmann::json::diff(there, wanted)) {
        std::string name = change_in_words(there, change);
        if (std::ranges::find(named, name) == named.end()) named.push_back(std::move(name));
    }
    if (const size_t n = named.size(); n > most_named) {
        named.resize(most_named);
        named.push_back(fmt::format("and {} more", n - most_named));
    }
    return fmt::format("{}", fmt::join(named, "; "));
}

/// Names a prompt, or a run by its policy and budget, for a message.
std::string name_of_entry(const nlohmann::json& entry) {
    const auto text = [&](const char* key) {
        const auto found = entry.is_object() ? entry.find(key) : entry.end();
        return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
    };
    const std::string policy = text("policy");
    return policy.empty() ? fmt::format("the prompt '{}'", text("name"))
                          : fmt::format("the run {} @ {}", policy, text("budget"));
}

/// Describes entries of a list that `wanted` changes or lacks. @param lacks "the command omits" or "the trace lacks"
std::vector<std::string> differences_of_entries(const nlohmann::json& there, const nlohmann::json& wanted,
                                                const char* lacks) {
    std::vector<nlohmann::json> added(wanted.begin(), wanted.end());
    std::vector<std::string> found;
    std::vector<nlohmann::json> missing;
    for (const nlohmann::json& entry : there) {
        const auto same = std::find(added.begin(), added.end(), entry);
        same == added.end() ? missing.push_back(entry) : static_cast<void>(added.erase(same));
    }
    size_t n_omitted = 0;
    std::string first_omitted;
    for (const nlohmann::json& entry : missing) {
        const std::string name = name_of_entry(entry);
        const auto changed =
            std::ranges::find_if(added, [&](const nlohmann::json& other) { return name_of_entry(other) == name; });
        if (changed != added.end())
            found.push_back(fmt::format("{} differs in {}", name, differences(entry, *changed)));
        else if (n_omitted++ == 0)
            first_omitted = name;
    }
    if (n_omitted > 0)
        found.push_back(fmt::format("{} {}{}", lacks, first_omitted,
                                    n_omitted > 1 ? fmt::format(" and {} more", n_omitted - 1) : ""));
    constexpr size_t most_named = 3;
    if (found.size() > most_named) {
        const size_t left = found.size() - most_named;
        found.resize(most_named);
        found.push_back(fmt::format("and {} more", left));
    }
    return found;
}

bool is_of_task(const nlohmann::json& recipe) { return recipe.is_object() && recipe.contains("task"); }

/// Whether policies see the question of some prompts, but not of others.
bool asks_in_both_ways(const nlohmann::json& prompts) {
    const auto has = [&](bool seen) {
        return std::ranges::any_of(prompts, [&](const nlohmann::json& prompt) {
            const auto found = prompt.is_object() ? prompt.find("query_aware") : prompt.end();
            return found != prompt.end() && *found == seen;
        });
    };
    return has(true) && has(false);
}

nlohmann::json recipe_there(const std::filesystem::path& trace) {
    try {
        const h5::Guard guard;
        const auto folder = std::filesystem::is_directory(trace) ? read_folder_record(trace) : std::nullopt;
        return bounded_json::parse_or_discard(folder ? folder->recipe_json : Source(trace).root.recipe_json);
    } catch (const TraceError&) {
        return {};
    }
}

}  // namespace

std::string short_setting(std::string_view key, const nlohmann::json& value) {
    constexpr size_t most_characters = 40;
    if (key == "stored" && value.is_string()) return "--record " + value.get<std::string>();
    if (value.is_null()) return key == "stored" ? "--record full" : "nothing";
    const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return text.size() > most_characters ? "" : text;
}

bool are_equal_recipes(nlohmann::json a, nlohmann::json b) {
    for (auto* recipe : {&a, &b}) erase_evidence(*recipe);
    return a == b;
}

bool can_extend_recipe_to(nlohmann::json part, nlohmann::json whole) {
    if (!has_lists(part) || !has_lists(whole)) return false;
    for (auto* recipe : {&part, &whole}) erase_evidence(*recipe);
    const auto &runs = part["runs"], &all_runs = whole["runs"];
    if (runs.size() > all_runs.size() || !std::equal(runs.begin(), runs.end(), all_runs.begin())) return false;
    auto prompts = part["prompts"], all_prompts = whole["prompts"];
    std::sort(prompts.begin(), prompts.end());
    std::sort(all_prompts.begin(), all_prompts.end());
    if (!std::includes(all_prompts.begin(), all_prompts.end(), prompts.begin(), prompts.end())) return false;
    auto rest = part, all_rest = whole;
    erase_extended_keys(rest);
    erase_extended_keys(all_rest);
    return rest == all_rest;
}

bool can_extend_recipe_to(const std::string& part_json, const std::string& whole_json) {
    return can_extend_recipe_to(nlohmann::json(bounded_json::parse_or_discard(part_json)),
                                nlohmann::json(bounded_json::parse_or_discard(whole_json)));
}

void name_stored_amount(nlohmann::json& recipe) {
    const std::string amount = recorded_text(recipe, "record");
    if (!amount.empty() && !recipe.contains("stored")) recipe["stored"] = amount;
}

std::string recipe_difference(nlohmann::json recipe, const std::filesystem::path& trace) {
    nlohmann::json there = recipe_there(trace);
    if (!there.is_object() || !recipe.is_object()) return {};
    for (auto* one : {&there, &recipe}) erase_evidence(*one);
    auto rest = there, wanted_rest = recipe;
    name_stored_amount(rest);
    std::vector<std::string> found, lacking;
    if (has_lists(there) && has_lists(recipe)) {
        if (is_of_task(there) != is_of_task(recipe))
            return fmt::format(" (it was written by {}; {} cannot extend it)", is_of_task(there) ? "eval" : "run",
                               is_of_task(recipe) ? "eval" : "run");
        const bool lacks_both = is_of_task(there) && is_of_task(recipe) && asks_in_both_ways(there["prompts"]) &&
                                !asks_in_both_ways(recipe["prompts"]);
        if (lacks_both) found.emplace_back("the command omits --query-aware both");
        for (const char* name : lists) {
            if (lacks_both && name == lists[0]) continue;
            std::ranges::move(differences_of_entries(there[name], recipe[name], "the command omits"),
                              std::back_inserter(found));
            std::ranges::move(differences_of_entries(recipe[name], there[name], "the trace lacks"),
                              std::back_inserter(lacking));
        }
        erase_extended_keys(rest);
        erase_extended_keys(wanted_rest);
    }
    if (const std::string keys = differences(rest, wanted_rest); !keys.empty())
        found.insert(found.begin(), "it differs in " + keys);
    if (found.empty()) found = std::move(lacking);  // a trace can be extended, so this alone is usually no obstacle
    return found.empty() ? "" : fmt::format(" ({})", fmt::join(found, "; "));
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
