#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "app/gui/session/session.h"
#include "policies/interface/registry.h"

namespace kvscope::gui {

/// A policy with the parameters that it is to be run with. A policy may stand in several rows.
struct PolicyRow {
    int id = 0;  ///< stays while rows come and go
    bool ticked = false;
    policies::PolicySpec spec;
};

/// What differs from the defaults among the options that are seldom changed: "temperature 0.7, isolated"; empty:
/// nothing.
std::string text_of_changes(const RunOptions& options);
/// All of those are as by default again.
void reset_seldom_changed(RunOptions& options);

/// What a person fills in to run policies on a prompt. Knows no ImGui.
class RunForm {
 public:
    /// A row for each policy of this build but the full cache, which always runs.
    RunForm();

    RunRequest request;
    std::vector<PolicyRow> rows;
    std::filesystem::path prompt_file;  ///< that the text was read from; empty: none, or it is another text by now

    /// Takes a file's text as the prompt's. @throws PromptFileError, and then everything is as it was
    void read_prompt(const std::filesystem::path& file);
    /// One that comes with the program. @throws std::runtime_error where a file is missing
    void take_sample(const std::string& name);

    /// Another row of the same policy behind this one, with its parameters.
    void duplicate(size_t row);
    /// Ticks a policy with a parameter set: the row that has it so, else the first that has it as by default, else a
    /// further row. @returns whether there is such a policy and it takes the value
    bool use(const WantedPolicy& wanted);
    /// The last row of a policy stays. @returns whether the row went
    bool remove(size_t row);
    int n_ticked() const;
    /// Ticks the policies that are chosen, and no other.
    void tick(const std::function<bool(const PolicyRow&)>& is_chosen);
    /// Whether there is a text and a policy to run on it.
    bool is_begun() const;

    /// What is wrong, first thing first; empty where it can be run. @param tokens as far as they were counted
    std::string problem(const std::optional<TokenCount>& tokens) const;
    /// The heading under which the form says a problem() beside what is to be changed; empty: nowhere.
    std::string heading_of(const std::string& problem, const std::optional<TokenCount>& tokens) const;
    /// Why the budgets cannot be read; empty where they can.
    std::string budget_problem() const;
    /// Why the text and the new tokens do not fit the model's context, and what to do; empty where they do, or where
    /// they are not counted yet.
    std::string length_problem(const std::optional<TokenCount>& tokens) const;
    /// What is wrong with one option, as `kvscope run` says it; empty: nothing.
    std::string problem_with(engine::RunOption::Member option) const;
    /// What is wrong with the output; looks at the disk.
    std::string output_problem() const;
    /// What becomes of the output, or of what is there already; looks at the disk.
    std::string output_note() const;
    /// What the budgets come to, one line each: "128 of 2,000 entries kept (6.4 %), …"; the counts alone where the
    /// prompt's length is not known. @throws policies::BudgetError
    std::vector<std::string> budget_lines(const std::optional<TokenCount>& tokens) const;
    /// Runs that would be made of each prompt, the full cache's included; 0 where the budgets cannot be read.
    int n_runs() const;
    /// One for each question, one without any.
    int n_prompts() const;

    /// The request with the ticked policies.
    RunRequest filled_in() const;

    /// `kvscope run …` that makes the same trace. @param model to be named; empty: the program's default model
    /// @throws std::invalid_argument for a text that no command line can hold
    std::string command(const std::filesystem::path& model) const;

    nlohmann::json to_json() const;
    /// What cannot be understood, and policies that this build does not have, are left out.
    void from_json(const nlohmann::json& state);

 private:
    void add_lines_of_bytes(const policies::Budget& budget, const TokenCount& tokens,
                            std::vector<std::string>& lines) const;

    int next_id_ = 0;
};

/// A budget as the form's notes write it: "4,096", "12.5 %".
std::string budget_text(const policies::Budget& budget);

/// A file that is no prompt: the message says which one, what was found and what to do.
struct PromptFileError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The largest file that is read as a prompt: more than a context of a million tokens.
constexpr uintmax_t most_prompt_bytes = 8 << 20;

/// Whether a file is called as texts are: .txt, .md, .markdown, in whichever case.
bool is_text_file(const std::filesystem::path& path);

/// "kvscope-1.h5": the first of that kind in the current folder that is neither there nor begun.
/// @param is_taken for what is not on disk yet
std::filesystem::path new_output(const std::function<bool(const std::filesystem::path&)>& is_taken = nullptr);

/// A prompt that comes with the program.
struct SamplePrompt {
    std::string name;
    std::string context;
    std::string question;
};

/// The demo's and those in assets/prompts/: a text, a line with ---, a question.
/// @throws std::runtime_error where a file is missing
SamplePrompt sample_prompt(const std::string& name);
/// Names and titles.
const std::vector<std::pair<std::string, std::string>>& sample_prompts();

}  // namespace kvscope::gui
