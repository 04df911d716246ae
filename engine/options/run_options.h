#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "policies/interface/parameters.h"

namespace kvscope::engine {

/// What can be asked of a run besides its model, prompts, policies, budgets and output. What each means, and what it is
/// called, is declared by `run_options`.
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
    bool analyze = false;
    int64_t n_new = 64;
    bool query_aware = true;
    bool use_template = true;
    bool parse_special = true;
    bool operator==(const RunOptions&) const = default;
};

/// One option of a run, declared once: the command line and its help, the window's form, what is saved of that, recipes
/// and the commands that make a run again come from it.
struct RunOption {
    using Member = std::variant<bool RunOptions::*, int RunOptions::*, int64_t RunOptions::*, uint64_t RunOptions::*,
                                double RunOptions::*, std::string RunOptions::*>;
    /// Whether a recipe names it. What earlier versions did not have is named where it is not the default alone, so
    /// that their traces are still resumed.
    enum class InRecipe { no, where_changed, always };
    /// A row of its own among what is seldom changed; a widget of its own elsewhere in the form; or none, and it is
    /// the command line's alone.
    enum class InForm { no, row, elsewhere };

    Member member;
    std::string key;                     ///< in recipes and in saved forms
    std::string flags;                   ///< of `kvscope run`: "-s,--seed"; a leading '!' turns a boolean off
    std::string name{};                  ///< in the form
    std::string help{};                  ///< one line
    std::string remark{};                ///< further sentences, for the form
    std::string while_on{};              ///< of a boolean: what the form says while it is on
    policies::Range range{};             ///< of numbers
    std::vector<std::string> choices{};  ///< of texts; of a boolean that takes a word, those for true and false
    bool (*accepts)(std::string_view) = nullptr;  ///< of texts that have no list of choices
    bool of_machine = false;  ///< of those: the choices are the machine's devices, and are found when a form is shown
    std::string refusal{};    ///< of a value outside these, which {} stands for
    std::optional<Member> follows{};  ///< the one whose value it has on a command line that does not give it
    InRecipe in_recipe = InRecipe::no;
    InForm in_form = InForm::no;
    bool of_prompt = false;     ///< of the prompts or the model: who makes a run again does not take it from the recipe
    bool of_any_model = false;  ///< an option of commands that run a model, not of `run` alone
    bool always_named = false;  ///< by commands, also where it is the default

    /// "0.7", "on", "bf16"
    std::string text(const RunOptions& options) const;
    bool is_default(const RunOptions& options) const;
    void reset(RunOptions& options) const;
    /// What is wrong with its value, as a sentence; empty: nothing.
    std::string problem(const RunOptions& options) const;
    /// Takes the value that a JSON object has of it. One that is not there or of another type changes nothing.
    void read(const nlohmann::json& object, RunOptions& options) const;
};

/// All options, in the order in which forms and helps show them.
const std::vector<RunOption>& run_options();
const RunOption& run_option(RunOption::Member member);

/// What is wrong with the first option that is wrong; empty: nothing.
std::string problem_of(const RunOptions& options);

/// Writes the options that a recipe names.
void write_recipe(const RunOptions& options, nlohmann::ordered_json& recipe);
/// The reverse, for runs that are made again: those of prompts and models excepted. What is missing, of another type or
/// out of range changes nothing: it may be another program's recipe, or no object at all.
void read_recipe(const nlohmann::json& recipe, RunOptions& options);

/// The device that a recipe says its runs were made on; "cpu" where it names none.
std::string recorded_device(const nlohmann::json& recipe);

/// How `kvscope run` is asked for them: option and value, which is empty where it takes none.
std::vector<std::pair<std::string, std::string>> command_words(const RunOptions& options);

}  // namespace kvscope::engine
