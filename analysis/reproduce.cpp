#include "analysis/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <variant>

#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_policy.h"
#include "analysis/shell_command.h"
#include "common/bounded_json.h"
#include "common/hidden_question.h"
#include "common/json.h"
#include "engine/options/run_options.h"
#include "policies/registry/policy_from_record.h"

namespace kvscope::analysis {
namespace {

namespace fs = std::filesystem;

/// Returns the prompt, or all prompts with the same context if the policy uses answers: "0,1,2".
std::string prompts_of(const trace::Reader& reader, int prompt, bool goes_by_answers) {
    if (!goes_by_answers) return std::to_string(prompt);
    const int first = reader.prompt(prompt).context_of.value_or(reader.prompt_number(prompt));
    std::vector<int> all;
    for (int i = 0; i < reader.n_prompts(); ++i)
        if (reader.prompt_number(i) == first || reader.prompt(i).context_of == first) all.push_back(i);
    return fmt::format("{}", fmt::join(all, ","));
}

/// Whether the recipe says how answers are sampled. Recipes of other programs may not say so.
bool says_how_answers_are_drawn(const nlohmann::json& recipe) {
    return recipe.is_object() && recipe.contains("temperature") && recipe.contains("top_p") &&
           recipe.contains("sampling_seed");
}

engine::RunOptions options_of(const trace::Reader& reader, const nlohmann::json& recipe, int prompt, int run) {
    const trace::RunAttributes& attributes = reader.run(prompt, run);
    engine::RunOptions options;
    options.n_new = std::max<int64_t>(reader.answer_length(prompt, run), 1);
    options.sampling_seed = attributes.seed;
    engine::read_options_from_recipe(recipe, options);
    options.seed = attributes.seed;
    options.isolated = attributes.mode == trace::schema::run::mode_isolated;
    // Earlier versions recorded the requested window or, if larger, the window of the policies.
    options.window = static_cast<int>(
        std::clamp<int64_t>(reader.prompt(prompt).window, options.window, std::numeric_limits<int>::max()));
    const std::string& dtype = reader.model().dtype;
    if (dtype == "f32" || dtype == "bf16") options.dtype = dtype;
    return options;
}

void remark_on_files(const policies::PolicySpec& spec, std::vector<std::string>& remarks) {
    if (!spec.definition->needs_file) return;
    std::vector<std::string> files;
    for (const auto& parameter : spec.values.declared()) {
        const auto* path = std::get_if<std::string>(&spec.values.value(parameter.name));
        std::error_code error;
        if (path && !path->empty() && parameter.choices.empty() && fs::exists(*path, error)) files.push_back(*path);
    }
    remarks.push_back(files.empty()
                          ? "needs a file that was not found: run the command in the folder in which the run was made"
                          : fmt::format("reads {}, which must not have changed since the run", fmt::join(files, ", ")));
}

void remark_on_label(const policies::PolicySpec& spec, std::vector<std::string>& remarks) {
    try {
        if (policies::parse_policy(spec.label()) == spec) return;
    } catch (const policies::ParameterError&) {
        // The label cannot be parsed.
    }
    remarks.emplace_back("has a parameter that cannot be written on a command line: the command makes a different run");
}

/// Repeats the recorded switches between compressed and full cache, including those requested during decoding.
void follow_switches(const trace::Reader& reader, int prompt, int run, policies::PolicySpec& spec,
                     std::vector<std::string>& remarks) {
    const auto place = trace::Place::of_run(prompt, run);
    if (!reader.has(place, trace::schema::run::switch_steps)) return;
    const std::string asked = spec.values.has("switches") ? spec.values.text("switches") : "";
    const auto steps = reader.read<uint32_t>(place, trace::schema::run::switch_steps);
    if (policies::set_recorded_switches(spec, steps, reader.answer_length(prompt, run)))
        remarks.push_back(
            fmt::format("switched its cache between compressed and full during decoding: the command uses the "
                        "recorded switches={}; the run began with {}",
                        spec.values.text("switches"), asked.empty() ? "none" : "switches=" + asked));
}

}  // namespace

Reproduction reproduction_of_run(const trace::Reader& reader, int prompt, int run, std::string_view model,
                                 std::string_view output) {
    check_prompt(reader, prompt);
    const trace::RunAttributes& attributes = reader.run(prompt, run);
    policies::PolicySpec spec = policy_of_run(attributes);
    const bool goes_by_answers = spec.create()->needs().answer_attention;
    const auto recipe = bounded_json::parse_or_discard(reader.recipe_json());
    Reproduction made;
    follow_switches(reader, prompt, run, spec, made.remarks);
    ShellCommand command("kvscope run");
    if (!model.empty()) command.add_path("-m", model);
    command.add_path("--prompt-from",
                     fmt::format("{}:{}", reader.path().string(), prompts_of(reader, prompt, goes_by_answers)));
    command.add("--policy", spec.label());
    if (!spec.definition->is_full()) {
        const std::string& requested = attributes.requested_budget;
        if (!requested.empty() && !spec.own_share() && (attributes.budget <= 0 || attributes.budget_of))
            command.add("--budget", requested);
        else if (const auto budget = policies::recorded_budget(spec, attributes.budget, attributes.budget_fraction))
            command.add("--budget", budget->text());
    }
    const engine::RunOptions options = options_of(reader, recipe, prompt, run);
    command.add(engine::to_command_line_options(options));
    if (const auto device = engine::recorded_device(recipe); device != "cpu") {
        command.add("--device", device);
        made.remarks.push_back(fmt::format("was made on {}; other devices round differently", device));
    }
    command.add_path("-o", output);
    made.command = command.text();
    if (options.dtype != reader.model().dtype)
        made.remarks.push_back(
            fmt::format("was made in {}, a number type that this program does not support", reader.model().dtype));
    if (goes_by_answers && !says_how_answers_are_drawn(recipe))
        made.remarks.emplace_back(
            "depends on the full run's answer, and the trace does not say how it was sampled: the command assumes "
            "greedy decoding");
    remark_on_label(spec, made.remarks);
    remark_on_files(spec, made.remarks);
    if (attributes.status == trace::schema::run::status_failed)
        made.remarks.push_back(fmt::format("failed, and the command repeats it: {}",
                                           attributes.message.empty() ? "unknown reason" : attributes.message));
    return made;
}

namespace {

/// The runs of a recipe without the full run.
struct RecipeRuns {
    std::vector<std::string> policies, budgets;
    bool is_grid = true;  ///< whether each policy ran at each budget
};

RecipeRuns runs_of_recipe(const nlohmann::ordered_json& recipe) {
    RecipeRuns runs;
    size_t n_with_budget = 0;
    std::vector<std::string> with_budget;  // policies
    const auto add = [](std::vector<std::string>& all, const std::string& one) {
        if (std::ranges::find(all, one) == all.end()) all.push_back(one);
    };
    for (const auto& entry : recipe.at("runs")) {
        const auto spec =
            policies::policy_from_record(entry.at("policy").get<std::string>(), entry.at("parameters").dump());
        if (spec.definition->is_full()) continue;
        add(runs.policies, spec.label());
        if (spec.own_share()) continue;
        add(with_budget, spec.label());
        add(runs.budgets, entry.at("budget").get<std::string>());
        ++n_with_budget;
    }
    runs.is_grid = n_with_budget == with_budget.size() * runs.budgets.size();
    return runs;
}

}  // namespace

std::vector<Reproduction> reproductions_of_samples(const trace::Reader& reader, std::string_view model) {
    const auto recipe = bounded_json::parse_or_discard(reader.recipe_json());
    if (!recipe.is_object() || !recipe.contains("prompts") || !recipe.contains("runs"))
        return {{"", {"There are no commands, because the trace has no recipe: kvscope did not compute its results"}}};
    std::vector<Reproduction> all;
    try {
        const RecipeRuns runs = runs_of_recipe(recipe);
        engine::RunOptions options;
        engine::read_options_from_recipe(recipe, options);
        options.query_aware = engine::RunOptions().query_aware;  // each sample has its own
        options.stored = engine::RunOptions().stored;
        if (const std::string dtype = recipe.value("dtype", ""); dtype == "f32" || dtype == "bf16")
            options.dtype = dtype;
        for (const auto& entry : recipe.at("prompts")) {
            if (!entry.contains("number")) continue;  // a prompt, not a sample
            std::string name = entry.at("name");
            if (!entry.at("query_aware").get<bool>()) name += hidden_question_suffix;
            ShellCommand command("kvscope run");
            if (!model.empty()) command.add_path("-m", model);
            command.add_path("--prompt-from", fmt::format("{}:{}", reader.path().string(), name));
            for (const std::string& policy : runs.policies) command.add("--policy", policy);
            if (!runs.budgets.empty()) command.add("--budget", fmt::format("{}", fmt::join(runs.budgets, ",")));
            command.add(engine::to_command_line_options(options));
            command.add_path("-o", fmt::format("{}-sample-{}.h5", reader.path().stem().string(), all.size()));
            all.push_back({command.text(), {}});
        }
        if (!all.empty() && !runs.is_grid)
            all.front().remarks.emplace_back(
                "Not every policy ran at every budget: the commands also make the missing runs");
    } catch (const std::exception& error) {
        return {{"", {fmt::format("There are no commands, because the recipe cannot be used: {}", error.what())}}};
    }
    if (all.empty())
        all.push_back({"",
                       {"There are no commands, because the trace stores only rows of results, and no prompts. "
                        "The command that made the trace repeats its runs"}});
    return all;
}

std::string command_to_reproduce_run(const trace::Reader& reader, int prompt, int run, std::string_view model,
                                     std::string_view output) {
    return reproduction_of_run(reader, prompt, run, model, output).command;
}

std::string file_name_of_repeated_run(const trace::Reader& reader, int prompt, int run) {
    fs::path name = reader.path().filename();
    if (name.extension() == ".part") name.replace_extension();
    if (name.extension() == ".h5" || name.extension() == ".hdf5") name.replace_extension();
    const int number = reader.is_in_file(prompt, run) ? reader.run_number(prompt, run) : run;
    return fmt::format("{}-again-{}-{}.h5", name.string(), reader.prompt_number(prompt), number);
}

}  // namespace kvscope::analysis
