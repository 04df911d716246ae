#include "analysis/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "analysis/run_choice.h"
#include "analysis/run_policy.h"
#include "json/bounded_json.h"
#include "policies/interface/recorded_policy.h"
#include "trace/answer_length.h"

namespace kvscope::analysis {
namespace {

namespace fs = std::filesystem;

/// A path that no program takes for an option.
std::string as_path(std::string path) { return path.rfind('-', 0) == 0 ? "./" + path : path; }

/// The words of a command.
class Command {
 public:
    void add(const char* option) { words_.emplace_back(option); }
    void add(const char* option, std::string value) {
        words_.emplace_back(option);
        words_.push_back(std::move(value));
    }
    std::string text() const {
        std::vector<std::string> quoted;
        for (const std::string& word : words_) quoted.push_back(shell_quoted(word));
        return fmt::format("kvscope run {}", fmt::join(quoted, " "));
    }

 private:
    std::vector<std::string> words_;
};

/// The prompt, or where the policy goes by what the answers attend to all prompts that share its context: "0,1,2".
std::string prompts_of(const trace::Reader& reader, int prompt, bool goes_by_answers) {
    if (!goes_by_answers) return std::to_string(prompt);
    const int first = reader.prompt(prompt).context_of.value_or(reader.prompt_number(prompt));
    std::vector<int> all;
    for (int i = 0; i < reader.n_prompts(); ++i)
        if (reader.prompt_number(i) == first || reader.prompt(i).context_of == first) all.push_back(i);
    return fmt::format("{}", fmt::join(all, ","));
}

/// A recipe of `kvscope run` says how answers are made; another program's may say nothing.
class Recipe {
 public:
    explicit Recipe(const trace::Reader& reader) : json_(bounded_json::parse_or_discard(reader.recipe_json())) {}

    bool says_how_answers_are_drawn() const {
        return number("temperature") && number("top_p") && json_.contains("sampling_seed");
    }
    std::optional<double> number(const char* key) const {
        if (!json_.is_object() || !json_.contains(key) || !json_[key].is_number()) return {};
        return json_[key].get<double>();
    }
    std::optional<uint64_t> whole(const char* key) const {
        if (!json_.is_object() || !json_.contains(key) || !json_[key].is_number_unsigned()) return {};
        return json_[key].get<uint64_t>();
    }
    bool is(const char* key, bool value) const {
        return json_.is_object() && json_.contains(key) && json_[key] == value;
    }
    /// As it was asked for, "10%"; of a run that failed the trace may hold no other.
    std::optional<std::string> budget(int run) const {
        if (!json_.is_object() || !json_.contains("runs") || !json_["runs"].is_array()) return {};
        const auto at = static_cast<size_t>(run);
        if (run < 0 || at >= json_["runs"].size()) return {};
        const auto& of_run = json_["runs"][at];
        if (!of_run.is_object() || !of_run.contains("budget") || !of_run["budget"].is_string()) return {};
        return of_run["budget"].get<std::string>();
    }

 private:
    nlohmann::json json_;
};

void add_sampling(Command& command, const Recipe& recipe, uint64_t seed) {
    if (const auto value = recipe.number("temperature"); value && *value != 0)
        command.add("--temp", fmt::format("{}", *value));
    if (const auto value = recipe.number("top_p"); value && *value != 1)
        command.add("--top-p", fmt::format("{}", *value));
    if (seed != 0) command.add("-s", std::to_string(seed));
    if (const auto value = recipe.whole("sampling_seed"); value && *value != seed)
        command.add("--sampling-seed", std::to_string(*value));
    if (recipe.is("ignore_eos", true)) command.add("--ignore-eos");
}

/// Of the files that a policy reads.
void remark_on_files(const policies::PolicySpec& spec, std::vector<std::string>& remarks) {
    if (!spec.definition->needs_file) return;
    std::vector<std::string> files;
    for (const auto& parameter : spec.values.declared()) {
        const auto* path = std::get_if<std::string>(&spec.values.value(parameter.name));
        std::error_code error;
        if (path && !path->empty() && parameter.choices.empty() && fs::exists(*path, error)) files.push_back(*path);
    }
    remarks.push_back(files.empty() ? "reads a file that is not there: begin in the folder from which it was named"
                                    : fmt::format("reads {}, which has to be as it was then", fmt::join(files, ", ")));
}

/// A parameter's text may hold what separates parameters on a command line.
void remark_on_label(const policies::PolicySpec& spec, std::vector<std::string>& remarks) {
    try {
        if (policies::parse_policy(spec.label()) == spec) return;
    } catch (const policies::ParameterError&) {
        // As where another one is read.
    }
    remarks.emplace_back("has a parameter that no command line can give: the command makes another run");
}

}  // namespace

std::string shell_quoted(std::string_view word) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
    std::string quoted = "'";
    for (const char c : word) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\'') {
            quoted += "'\\''";
        } else if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F) {
            quoted += fmt::format("'\"$(printf '\\{:03o}')\"'", byte);
        } else {
            quoted += c;
        }
    }
    return quoted + "'";
}

Reproduction reproduction(const trace::Reader& reader, int prompt, int run, std::string_view model,
                          std::string_view output) {
    check_prompt(reader, prompt);
    const trace::RunAttributes& attributes = reader.run(prompt, run);
    const policies::PolicySpec spec = run_policy(attributes);
    const bool goes_by_answers = spec.create()->needs().answer_attention;
    const Recipe recipe(reader);
    Reproduction made;
    Command command;
    if (!model.empty()) command.add("-m", as_path(std::string(model)));
    command.add("--prompt-from",
                fmt::format("{}:{}", as_path(reader.path().string()), prompts_of(reader, prompt, goes_by_answers)));
    command.add("--policy", spec.label());
    if (spec.definition->name != "full") {
        const bool is_in_file = reader.is_in_file(prompt, run);
        const auto asked = is_in_file ? recipe.budget(reader.run_number(prompt, run)) : std::nullopt;
        if (asked && !spec.own_share() && (attributes.budget <= 0 || attributes.budget_of))
            command.add("--budget", *asked);
        else if (const auto budget = policies::recorded_budget(spec, attributes.budget, attributes.budget_fraction))
            command.add("--budget", budget->text());
    }
    const std::string& dtype = reader.model().dtype;
    if (dtype == "f32" || dtype == "bf16")
        command.add("--dtype", dtype);
    else
        made.remarks.push_back(fmt::format("was made in {}, which this program does not compute in", dtype));
    if (attributes.mode == trace::schema::run::mode_isolated) command.add("--isolated");
    add_sampling(command, recipe, attributes.seed);
    if (goes_by_answers && !recipe.says_how_answers_are_drawn())
        made.remarks.emplace_back(
            "goes by the full cache's answer, and the trace does not say how that was drawn: greedily is assumed");
    const int64_t n_recorded = std::max<int64_t>(trace::answer_length(reader, prompt, run), 1);
    command.add("-n", std::to_string(trace::wanted_answer_length(reader).value_or(n_recorded)));
    // Earlier versions recorded what the policies looked through, where that was more than what was asked for.
    constexpr int64_t usual_window = 32;
    const auto asked = static_cast<int64_t>(recipe.whole("window").value_or(usual_window));
    if (const int64_t window = std::max(asked, reader.prompt(prompt).window); window != usual_window)
        command.add("--window", std::to_string(window));
    if (recipe.is("compare", false)) command.add("--no-compare");
    if (recipe.is("record", false)) command.add("--no-record");
    command.add("-o", as_path(std::string(output)));
    made.command = command.text();
    remark_on_label(spec, made.remarks);
    remark_on_files(spec, made.remarks);
    if (attributes.status == trace::schema::run::status_failed)
        made.remarks.push_back(fmt::format("failed, and kept nothing: {}; the command tries it again",
                                           attributes.message.empty() ? "it is not known why" : attributes.message));
    return made;
}

std::string reproduce_command(const trace::Reader& reader, int prompt, int run, std::string_view model,
                              std::string_view output) {
    return reproduction(reader, prompt, run, model, output).command;
}

std::string reproduction_name(const trace::Reader& reader, int prompt, int run) {
    fs::path name = reader.path().filename();
    if (name.extension() == ".part") name.replace_extension();
    if (name.extension() == ".h5" || name.extension() == ".hdf5") name.replace_extension();
    const int number = reader.is_in_file(prompt, run) ? reader.run_number(prompt, run) : run;
    return fmt::format("{}-again-{}-{}.h5", name.string(), reader.prompt_number(prompt), number);
}

}  // namespace kvscope::analysis
