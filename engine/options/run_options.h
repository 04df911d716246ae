#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/json.h"
#include "policies/api/parameters.h"

namespace kvscope::engine {

/// Options of a run, without model, prompts, policies, budgets and output. run_options() describes each option.
struct RunOptions {
    double temperature = 0;
    double top_p = 1;
    uint64_t sampling_seed = 0;
    uint64_t seed = 0;
    std::string dtype = "auto";
    std::string device = "cpu";
    bool isolated = false;
    bool ignore_eos = false;
    int window = 32;
    bool alignment = false;
    bool compare = true;
    bool record = true;
    std::string stored = "full";  ///< what the trace stores of each prompt: full, measures or rows
    bool analyze = false;
    int64_t n_new = 64;
    bool query_aware = true;
    bool use_template = true;
    bool parse_special = true;
    [[nodiscard]] bool operator==(const RunOptions&) const = default;
    /// Whether the trace stores neither prompts nor runs, only their rows of results.
    [[nodiscard]] bool stores_only_rows() const { return stored == "rows"; }
    /// Whether the trace omits data sets with a value per token, per pair of the window's queries or per vocabulary
    /// entry.
    [[nodiscard]] bool stores_only_measures() const { return stored == "measures"; }
};

/// Declaration of one option, for the command line, the app's form, recipes and copied commands.
struct RunOption {
    using Member = std::variant<bool RunOptions::*, int RunOptions::*, int64_t RunOptions::*, uint64_t RunOptions::*,
                                double RunOptions::*, std::string RunOptions::*>;
    /// Whether recipes contain the option. `where_changed` omits defaults, which earlier versions did not write.
    enum class InRecipe { no, where_changed, always };
    /// Place of the option in the app's form. Options with `elsewhere` have their own widget.
    enum class InForm { no, row, elsewhere };

    Member member;
    std::string key;          ///< name in recipes and in saved forms
    std::string flags;        ///< such as "-s,--seed"; a leading '!' means that the flag turns the option off
    std::string name{};       ///< label in the form
    std::string help{};       ///< one line for help and form
    std::string remark{};     ///< tooltip text after `help` in the form
    std::string while_on{};   ///< text in the form while a boolean option is on
    policies::Range range{};  ///< allowed numbers
    std::vector<std::string> choices{};  ///< allowed texts; for a boolean with a value, the words for true and false
    bool (*accepts)(std::string_view) = nullptr;  ///< checks texts without a list of choices
    bool of_machine = false;          ///< whether the choices are this machine's devices, found when a form is shown
    std::string refusal{};            ///< message for a value that is not allowed; {} stands for the value
    std::optional<Member> follows{};  ///< option whose value is the default on the command line
    InRecipe in_recipe = InRecipe::no;
    InForm in_form = InForm::no;
    bool of_prompt = false;  ///< whether the option belongs to prompts or model, so that it is not read from a recipe
    bool of_any_model = false;  ///< whether all commands that run a model have the option, not only `run`
    bool always_named = false;  ///< whether copied commands contain the option even with its default value

    [[nodiscard]] std::string text(const RunOptions& options) const;
    [[nodiscard]] bool is_default(const RunOptions& options) const;
    void reset(RunOptions& options) const;
    /// Returns a sentence that says why the value is not allowed; empty if the value is allowed.
    [[nodiscard]] std::string problem(const RunOptions& options) const;
    /// Reads the option from a JSON object. A missing value or a value of another type changes nothing.
    void read(const nlohmann::json& object, RunOptions& options) const;
};

[[nodiscard]] const std::vector<RunOption>& run_options();
[[nodiscard]] const RunOption& run_option(RunOption::Member member);

[[nodiscard]] std::string find_option_problem(const RunOptions& options);

void write_options_to_recipe(const RunOptions& options, nlohmann::ordered_json& recipe);
/// Reads the options that repeat a recipe's runs. Skips invalid values and options that belong to prompts or model.
void read_options_from_recipe(const nlohmann::json& recipe, RunOptions& options);

/// Returns the device of a recipe's runs; "cpu" if the recipe names none.
[[nodiscard]] std::string recorded_device(const nlohmann::json& recipe);

/// Returns the options of a `kvscope run` command with their values. The value of a flag is empty.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> to_command_line_options(const RunOptions& options);

}  // namespace kvscope::engine
