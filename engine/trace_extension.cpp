#include "engine/trace_extension.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "common/bounded_json.h"
#include "common/json.h"
#include "engine/files/checkpoint_error.h"
#include "engine/recipe_json.h"
#include "policies/registry/feasibility.h"
#include "policies/registry/policy_from_record.h"
#include "trace/records/storable_text.h"
#include "trace/records/trace_errors.h"

namespace kvscope::engine {
namespace {

nlohmann::json list_of(const std::string& recipe_json, const char* name) {
    const nlohmann::json recipe = bounded_json::parse_or_discard(recipe_json);
    if (!recipe.is_object() || !recipe.contains(name) || !recipe[name].is_array()) return nlohmann::json::array();
    return recipe[name];
}

/// Whether a recipe's entry describes this prompt. If an earlier version omitted fields, the token ids decide.
bool is_entry_of(const nlohmann::json& entry, nlohmann::json own) {
    if (!entry.is_object()) return false;
    nlohmann::json stored = entry;
    for (auto* one : {&stored, &own})
        for (const char* derived : {"rendered", "evidence"}) one->erase(derived);
    for (const char* later : {"special", "tokens"}) {
        if (stored.contains(later) || !own.contains(later)) continue;
        for (const char* key : {later, "n_context"}) own.erase(key);
        stored.erase("n_context");
    }
    return stored == own;
}

/// Orders `wanted` as in `entries`. @param make makes an element that `wanted` lacks, or returns nullopt
template <class T, class Entry, class Same, class Make>
std::vector<T> ordered(const nlohmann::json& entries, std::vector<T> wanted, Entry entry_of, Same are_same, Make make) {
    std::vector<nlohmann::json> own;
    for (const T& one : wanted) own.push_back(entry_of(one));
    std::vector<T> all;
    for (const auto& entry : entries) {
        const auto found =
            std::find_if(own.begin(), own.end(), [&](const nlohmann::json& one) { return are_same(entry, one); });
        if (found == own.end()) {
            if (std::optional<T> made = make(entry)) all.push_back(std::move(*made));
            continue;
        }
        const auto at = wanted.begin() + (found - own.begin());
        all.push_back(std::move(*at));
        wanted.erase(at);
        own.erase(found);
    }
    all.insert(all.end(), std::make_move_iterator(wanted.begin()), std::make_move_iterator(wanted.end()));
    return all;
}

nlohmann::json entry_now(const RunPlan& plan) {
    try {
        return recipe_of_run(plan);
    } catch (const checkpoint::CheckpointError&) {
        return {};
    }
}

/// Returns the plan of a recorded run. Keeps the recipe entry if the files have changed. Returns nullopt if this build
/// lacks the policy, or if `asked` contains the run with the current files.
std::optional<RunPlan> recorded_plan_of(const nlohmann::json& entry, const std::vector<nlohmann::json>& asked) {
    const auto without_files = [](nlohmann::json one) {
        one.erase("files");
        return one;
    };
    try {
        RunPlan plan{policies::policy_from_record(entry.at("policy").get<std::string>(), entry.at("parameters").dump()),
                     policies::parse_budget(entry.at("budget").get<std::string>())};
        const nlohmann::json own = recipe_of_run_without_files(plan);
        if (without_files(entry) != own) return std::nullopt;
        if (entry_now(plan) == entry) return plan;
        const bool is_asked = std::any_of(asked.begin(), asked.end(),
                                          [&](const nlohmann::json& one) { return without_files(one) == own; });
        if (is_asked) return std::nullopt;
        plan.stored_entry = entry.dump();
        return plan;
    } catch (const nlohmann::json::exception&) {
        // The entry does not have the format of kvscope.
    } catch (const std::invalid_argument&) {
        // This build lacks the policy or a parameter.
    }
    return std::nullopt;
}

}  // namespace

std::vector<Prompt> in_order_of_recipe(const std::string& recipe_json, std::vector<Prompt> prompts) {
    return ordered(
        list_of(recipe_json, "prompts"), std::move(prompts),
        [](const Prompt& prompt) { return recipe_of_prompt(prompt); }, is_entry_of,
        [](const nlohmann::json&) -> std::optional<Prompt> { return std::nullopt; });
}

std::vector<RunPlan> in_order_of_recipe(const std::string& recipe_json, std::vector<RunPlan> plans, bool keeps_others) {
    const auto entry_of = [](const RunPlan& plan) { return recipe_of_run(plan); };
    std::vector<nlohmann::json> asked(plans.size());
    std::transform(plans.begin(), plans.end(), asked.begin(), entry_of);
    return ordered(
        list_of(recipe_json, "runs"), std::move(plans), entry_of, std::equal_to<>(),
        [&](const nlohmann::json& entry) { return keeps_others ? recorded_plan_of(entry, asked) : std::nullopt; });
}

std::string recipe_with_render_times(const std::string& recipe_json, std::span<const Prompt> prompts,
                                     std::time_t created) {
    auto recipe = nlohmann::ordered_json::parse(recipe_json);
    for (size_t i = 0; i < prompts.size(); ++i)
        if (!prompts[i].chat_template.empty() && prompts[i].rendered_at != created)
            recipe["prompts"][i]["rendered"] = trace::utc_text(prompts[i].rendered_at);
    return recipe.dump();
}

void require_recorded_files(const std::filesystem::path& output, std::span<const RunPlan> plans) {
    for (const RunPlan& plan : plans) {
        const policies::Parameter* file = policies::find_file_parameter(plan.spec);
        if (plan.stored_entry.empty() || !file) continue;
        std::error_code error;
        const auto path = std::filesystem::absolute(plan.spec.values.text(file->name), error);
        throw trace::OutputExists(fmt::format(
            "{} contains the run {}. To add prompts, the policy needs its file {}, which is {}: restore the "
            "file, or choose another output",
            output.string(), plan.label(), path.string(),
            std::filesystem::exists(path, error) ? "not the file that the run read" : "missing"));
    }
}

std::vector<RunPlan> in_order_of_unfinished_trace(const std::string& begun_json, std::vector<RunPlan> plans) {
    const nlohmann::json runs = list_of(begun_json, "runs");
    const bool names_all = std::ranges::all_of(plans, [&](const RunPlan& plan) {
        return std::ranges::find(runs, nlohmann::json(recipe_of_run(plan))) != runs.end();
    });
    return in_order_of_recipe(begun_json, std::move(plans), names_all);
}

std::vector<RunPlan> in_order_of_recipe(const std::string& complete_json, const std::string& begun_json,
                                        std::vector<RunPlan> plans) {
    plans = in_order_of_recipe(complete_json, std::move(plans), true);
    std::vector<RunPlan> continued = in_order_of_unfinished_trace(begun_json, plans);
    const nlohmann::json held = list_of(complete_json, "runs");
    if (!held.empty() && plans.size() == held.size()) return plans;  // an unfinished extension is not needed
    const bool extends = std::equal(
        held.begin(), held.end(), continued.begin(),
        continued.begin() + static_cast<std::ptrdiff_t>(std::min(held.size(), continued.size())),
        [](const nlohmann::json& entry, const RunPlan& plan) { return nlohmann::json(recipe_of_run(plan)) == entry; });
    return extends ? continued : plans;
}

std::string with_stored_prompt_entries(const std::string& stored_json, const std::string& recipe_json) {
    auto recipe = nlohmann::ordered_json::parse(recipe_json);
    const nlohmann::json stored = list_of(stored_json, "prompts");
    if (!recipe.contains("prompts")) return recipe_json;
    auto& prompts = recipe["prompts"];
    for (size_t i = 0; i < std::min(stored.size(), prompts.size()); ++i)
        if (is_entry_of(stored[i], prompts[i])) prompts[i] = stored[i];
    return recipe.dump();
}

bool recipe_lacks_token_ids(const std::string& recipe_json) {
    const nlohmann::json prompts = list_of(recipe_json, "prompts");
    return std::any_of(prompts.begin(), prompts.end(), [](const nlohmann::json& entry) {
        return entry.is_object() && entry.value("question", nlohmann::json("")) != "" && !entry.contains("tokens");
    });
}

void refuse_questions_that_change_runs(const trace::Reader& stored, std::span<const Prompt> prompts,
                                       std::span<const RunPlan> plans) {
    const auto n_asked_before = static_cast<int>(list_of(stored.recipe_json(), "prompts").size());
    const auto goes_by_answers = [&](int prompt, int run) {
        const auto number = static_cast<size_t>(stored.run_number(prompt, run));
        return number < plans.size() && stored.run(prompt, run).status != trace::schema::run::status_failed &&
               plans[number].spec.create()->needs().answer_attention;
    };
    for (const std::vector<int>& numbers : group_by_shared_context(prompts)) {
        if (numbers.back() < n_asked_before) continue;
        for (int i = 0; i < stored.n_prompts(); ++i) {
            if (std::find(numbers.begin(), numbers.end(), stored.prompt_number(i)) == numbers.end()) continue;
            for (int run = 0; run < stored.n_runs(i); ++run) {
                if (!goes_by_answers(i, run)) continue;
                throw trace::OutputExists(fmt::format(
                    "{} contains {} of the prompt \"{}\". This run depends on the full run's answers to all questions "
                    "of its context, so the further question \"{}\" would change it: choose another output for the "
                    "command with all questions",
                    stored.path().string(), stored.run(i, run).label, stored.prompt(i).name,
                    prompts[static_cast<size_t>(numbers.back())].question));
            }
        }
    }
}

}  // namespace kvscope::engine
