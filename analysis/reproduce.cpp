#include "analysis/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/run_choice.h"
#include "analysis/run_policy.h"
#include "trace/answer_length.h"

namespace kvscope::analysis {
namespace {

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
    const policies::PolicySpec spec = run_policy(attributes);
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
    const int64_t n_recorded = std::max<int64_t>(trace::answer_length(reader, prompt, run), 1);
    add("-n", std::to_string(trace::wanted_answer_length(reader).value_or(n_recorded)));
    add("-o", as_path(std::string(output)));
    std::vector<std::string> quoted;
    for (const std::string& word : words) quoted.push_back(shell_quoted(word));
    return fmt::format("{}", fmt::join(quoted, " "));
}

}  // namespace kvscope::analysis
