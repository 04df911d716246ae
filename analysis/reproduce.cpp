#include "analysis/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "analysis/figure_definition.h"
#include "analysis/run_choice.h"
#include "analysis/run_style.h"
#include "policies/interface/registry.h"

namespace kvscope::analysis {
namespace {

policies::PolicySpec spec_of(const trace::RunAttributes& run) {
    policies::PolicySpec spec;
    spec.definition = policies::find_definition(run.policy);
    if (spec.definition == nullptr) {
        throw NothingToShow(fmt::format("{}: this program does not know the policy '{}'", run_label(run), run.policy));
    }
    try {
        spec.values = policies::ParameterValues::from_json(spec.definition->parameters, run.parameters_json);
    } catch (const policies::ParameterError& error) {
        throw NothingToShow(fmt::format("{}: its parameters are not those of this program's {}: {}", run_label(run),
                                        run.policy, error.what()));
    }
    return spec;
}

/// As many tokens as were to be generated; in traces made elsewhere as many as were.
int64_t new_tokens(const trace::Reader& reader, int prompt, int run) {
    const auto recipe = nlohmann::json::parse(reader.recipe_json(), nullptr, false);
    if (recipe.is_object()) {
        const auto found = recipe.find("new_tokens");
        if (found != recipe.end() && found->is_number_integer()) return found->get<int64_t>();
    }
    const trace::Place place = trace::Place::of_run(prompt, run);
    if (!reader.has(place, trace::schema::run::output_ids)) return 1;
    return std::max<int64_t>(1, static_cast<int64_t>(reader.shape(place, trace::schema::run::output_ids).at(0)));
}

/// A path that no program takes for an option.
std::string as_path(std::string path) { return path.rfind('-', 0) == 0 ? "./" + path : path; }

}  // namespace

std::string shell_quoted(std::string_view word) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
    std::string quoted = "'";
    for (const char c : word) {
        if (c == '\'') {
            quoted += "'\\''";
        } else {
            quoted += c;
        }
    }
    return quoted + "'";
}

std::string reproduce_command(const trace::Reader& reader, int prompt, int run, std::string_view model,
                              std::string_view output) {
    check_prompt(reader, prompt);
    const trace::RunAttributes& attributes = reader.run(prompt, run);
    const policies::PolicySpec spec = spec_of(attributes);
    std::vector<std::string> words = {"kvscope", "run"};
    const auto add = [&](const char* option, std::string value) {
        words.emplace_back(option);
        words.push_back(std::move(value));
    };
    if (!model.empty()) add("-m", as_path(std::string(model)));
    add("--prompt-from", fmt::format("{}:{}", as_path(reader.path().string()), prompt));
    add("--policy", spec.label());
    if (spec.definition->name != "full") add("--budget", std::to_string(attributes.budget));
    const std::string& dtype = reader.model().dtype;
    if (dtype == "f32" || dtype == "bf16") add("--dtype", dtype);
    if (attributes.mode == trace::schema::run::mode_isolated) words.emplace_back("--isolated");
    if (attributes.seed != 0) add("-s", std::to_string(attributes.seed));
    add("-n", std::to_string(new_tokens(reader, prompt, run)));
    add("-o", as_path(std::string(output)));
    std::vector<std::string> quoted;
    for (const std::string& word : words) quoted.push_back(shell_quoted(word));
    return fmt::format("{}", fmt::join(quoted, " "));
}

}  // namespace kvscope::analysis
