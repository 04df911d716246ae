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
#include "policies/registry/registry.h"

namespace kvscope::analysis {
class ShellCommand;
}

namespace kvscope::gui {

/// A policy and its parameters. Several rows may have the same policy.
struct PolicyRow {
    int id = 0;  ///< does not change when rows are added or removed
    bool ticked = false;
    policies::PolicySpec spec;
};

/// Lists the rarely used options that differ from their defaults: "temperature 0.7, isolated".
[[nodiscard]] std::string changed_options_text(const RunOptions& options);
void reset_seldom_changed_options(RunOptions& options);

/// A reason why the form cannot start a run.
struct FormProblem {
    /// Section of the form that shows the text; none if only the list of messages shows the text.
    enum class Section { none, prompt, budgets, output };

    std::string text;  ///< empty if there is no problem
    Section section = Section::none;
};

/// Whether an option applies to tasks. `kvscope eval` has exactly these options.
[[nodiscard]] bool applies_to_tasks(const engine::RunOption& option);

/// The form with which the user runs policies on a prompt or a task. Does not use ImGui.
class RunForm {
 public:
    /// Makes a row for each policy of this build except `full`, which always runs.
    RunForm();

    RunRequest request;
    std::vector<PolicyRow> rows;
    std::filesystem::path prompt_file;  ///< source of the text; empty if there is none or the text was edited
    std::vector<TaskSettings> tasks;    ///< all tasks; task() is the chosen one
    std::vector<TaskResult<PromptSource>> contents;  ///< of `request.sources`, in this order; empty: not read yet

    /// Reads the prompt from a file. If this throws PromptFileError, the form is unchanged.
    void read_prompt(const std::filesystem::path& file);
    void take_sample(const std::string& name);
    /// Adds text files, JSONL files and folders to the request's sources. They replace the text and the chosen task.
    void add_sources(const std::vector<std::filesystem::path>& paths);
    void remove_source(size_t place);

    /// Chooses a task of `tasks`, or the prompt. A number of new tokens that the user has not changed becomes the
    /// default of the chosen task or prompt.
    void choose_task(std::optional<size_t> place);
    /// Returns the chosen task, or nullptr if the prompt is run.
    [[nodiscard]] const TaskSettings* task() const { return task_ ? &tasks[*task_] : nullptr; }
    /// Returns the options, with defaults for those that do not apply to the chosen task.
    [[nodiscard]] RunOptions applied_options() const;

    void duplicate(size_t row);
    /// Ticks a row with this policy and parameter value, or adds the row. Returns false if the value does not exist.
    bool use(const WantedPolicy& wanted);
    /// Removes a row unless it is the only one of its policy. Returns whether it was removed.
    bool remove(size_t row);
    [[nodiscard]] int n_ticked() const;
    void tick(const std::function<bool(const PolicyRow&)>& is_chosen);
    [[nodiscard]] bool is_begun() const;

    /// Returns the first problem that prevents a run. @param tokens nullopt until they are counted
    [[nodiscard]] FormProblem problem(const std::optional<TokenCount>& tokens) const;
    [[nodiscard]] std::string budget_problem() const;
    /// Returns a message with remedies if the text and the new tokens exceed the model's context, or "" if they fit. If
    /// only some prompts of sources fit, the others are left out, see n_too_long().
    [[nodiscard]] std::string length_problem(const std::optional<TokenCount>& tokens) const;
    [[nodiscard]] int n_too_long(const TokenCount& tokens) const;
    [[nodiscard]] std::string problem_with(engine::RunOption::Member option) const;
    /// Returns why a file of the chosen task cannot be read, or "". Accesses the disk.
    [[nodiscard]] std::string task_file_problem() const;
    /// Returns why the sources contain no prompt, or which source cannot be read, or "". Accesses the disk.
    [[nodiscard]] std::string source_problem() const;
    /// Returns a problem with the output file, or "" if there is none. Accesses the disk.
    [[nodiscard]] std::string output_problem() const;
    /// Returns a note on how the run changes the output file. Accesses the disk.
    [[nodiscard]] std::string output_note() const;
    /// Returns lines such as "128 of 2,000 entries kept (6.4 %)". Throws policies::BudgetError.
    [[nodiscard]] std::vector<std::string> budget_lines(const std::optional<TokenCount>& tokens) const;
    /// Number of runs per prompt, including the full run; 0 if the budgets cannot be parsed.
    [[nodiscard]] int n_runs() const;
    /// Number of prompts; 0 until sources are read.
    [[nodiscard]] int n_prompts() const;
    /// Number of questions of a prompt, or the largest number if prompts have questions of their own.
    [[nodiscard]] int n_questions() const;

    [[nodiscard]] RunRequest filled_in() const;

    /// Returns the `kvscope run …` or `kvscope eval …` command for the same trace. Throws std::invalid_argument if a
    /// text cannot be quoted.
    [[nodiscard]] std::string command(const std::filesystem::path& model) const;

    [[nodiscard]] nlohmann::json to_json() const;
    /// Restores the form. Ignores invalid values and policies that this build does not have.
    void from_json(const nlohmann::json& state);

 private:
    void add_lines_of_bytes(const policies::Budget& budget, const TokenCount& tokens,
                            std::vector<std::string>& lines) const;

    void add_prompt(analysis::ShellCommand& command, const RunRequest& wanted) const;
    void read_tasks(const nlohmann::json& state);

    int next_id_ = 0;
    std::optional<size_t> task_;
};

[[nodiscard]] std::string budget_text(const policies::Budget& budget);

struct PromptFileError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Largest accepted prompt file. A text of a million tokens is smaller.
inline constexpr uintmax_t most_prompt_bytes = 8 << 20;

[[nodiscard]] bool is_text_file(const std::filesystem::path& path);
/// Whether the Run form accepts a path as a source of prompts: a text file, a JSONL file, or a folder that is no model
/// and no unfinished trace.
[[nodiscard]] bool is_prompt_source(const std::filesystem::path& path);
/// Returns a text that changes when the file is written, or when the folder gains or loses a file.
[[nodiscard]] std::string stamp_of_file(const std::filesystem::path& path);

/// Returns the first free name of "kvscope-1.h5", "kvscope-2.h5", … in the current folder.
/// @param is_taken whether a job has reserved a name that is not on disk yet
[[nodiscard]] std::filesystem::path find_free_output_path(
    const std::function<bool(const std::filesystem::path&)>& is_taken = nullptr);

struct SamplePrompt {
    std::string name;
    std::string context;
    std::string question;
};

/// Reads a bundled prompt. A line "---" in its file separates context and question.
[[nodiscard]] SamplePrompt read_sample_prompt(const std::string& name);
[[nodiscard]] const std::vector<std::pair<std::string, std::string>>& sample_prompts();

}  // namespace kvscope::gui
