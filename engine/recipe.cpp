#include <algorithm>
#include <filesystem>

#include "common/json.h"
#include "engine/experiment.h"
#include "engine/files/fingerprint.h"
#include "engine/prefill/evidence_ranges.h"
#include "engine/recipe_json.h"
#include "kernels/cpu_features.h"

namespace kvscope::engine {

std::string fingerprint_policy_files(const policies::PolicySpec& spec) {
    namespace fs = std::filesystem;
    std::vector<fs::path> files;
    for (const auto& parameter : spec.values.declared()) {
        const auto* text = std::get_if<std::string>(&spec.values.value(parameter.name));
        std::error_code none;
        if (!text || text->empty()) continue;
        if (fs::is_regular_file(*text, none)) files.emplace_back(*text);
        for (auto entry = fs::directory_iterator(*text, none); entry != fs::directory_iterator(); entry.increment(none))
            if (entry->is_regular_file(none)) files.push_back(entry->path());
    }
    std::sort(files.begin(), files.end());
    return files.empty() ? "" : checkpoint::fingerprint_files(files, "");
}

std::string RunPlan::label() const { return policies::run_label(spec, budget); }

std::string RunPlan::asked() const { return spec.own_share() ? spec.label() : label(); }

nlohmann::ordered_json recipe_of_prompt(const Prompt& prompt) {
    nlohmann::ordered_json entry = {{"name", prompt.name},
                                    {"text", prompt.text},
                                    {"question", prompt.question},
                                    {"query_aware", prompt.query_aware},
                                    {"n_context", prompt.n_context}};
    if (!prompt.answers.empty()) entry["answers"] = prompt.answers;  // they determine the scores
    if (!prompt.evidence.empty()) entry["evidence"] = ranges_of_evidence(prompt.evidence);
    if (prompt.chat_template.empty()) entry["special"] = prompt.parses_special;
    // Earlier versions tokenized context and question separately, which can give other token ids.
    if (!prompt.question.empty()) entry["tokens"] = fingerprint_of_tokens(prompt.ids);
    return entry;
}

nlohmann::ordered_json recipe_of_run_without_files(const RunPlan& plan) {
    return {{"policy", plan.spec.definition->name},
            {"parameters", nlohmann::ordered_json::parse(plan.spec.values.to_json())},
            {"budget", plan.budget.text()}};
}

nlohmann::ordered_json recipe_of_run(const RunPlan& plan) {
    if (!plan.stored_entry.empty()) return nlohmann::ordered_json::parse(plan.stored_entry);
    nlohmann::ordered_json entry = recipe_of_run_without_files(plan);
    const std::string files = plan.spec.definition->needs_file ? fingerprint_policy_files(plan.spec) : "";
    if (!files.empty()) entry["files"] = files;
    return entry;
}

std::string recipe_json(const Model& model, std::span<const Prompt> prompts, std::span<const RunPlan> plans,
                        const ExperimentOptions& options) {
    nlohmann::ordered_json recipe;
    recipe["model"] = model.fingerprint();
    recipe["dtype"] = kernels::name_of(model.dtype());
    // The device and the processor's instructions affect rounding.
    if (const auto& device = model.device(); !device.is_processor())
        recipe["device"] = device.backend->name();
    else
        recipe["instructions"] = kernels::name_of(kernels::simd_level());
    for (const auto& prompt : prompts) recipe["prompts"].push_back(recipe_of_prompt(prompt));
    for (const auto& plan : plans) recipe["runs"].push_back(recipe_of_run(plan));
    recipe["mode"] = options.isolated ? "isolated" : "shared";
    RunOptions recorded = options;
    recorded.alignment = options.record && options.alignment;
    write_options_to_recipe(recorded, recipe);
    return recipe.dump();
}

std::vector<RunPlan> with_full_run_first(std::vector<RunPlan> plans) {
    std::vector<RunPlan> all;
    all.push_back({policies::parse_policy(full_policy), policies::parse_budget("100%")});
    for (auto& plan : plans) {
        const bool known = std::any_of(all.begin(), all.end(), [&](const RunPlan& other) {
            return other.spec == plan.spec && (other.budget == plan.budget || plan.spec.definition->is_full());
        });
        if (!known) all.push_back(std::move(plan));
    }
    return all;
}

}  // namespace kvscope::engine
