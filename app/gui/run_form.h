#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/engine_session.h"
#include "policies/interface/registry.h"

namespace kvscope::gui {

/// A policy with the parameters that it is to be run with. A policy may stand in several rows.
struct PolicyRow {
    int id = 0;  ///< stays while rows come and go
    bool ticked = false;
    policies::PolicySpec spec;
};

/// What a person fills in to run policies on a prompt. Knows no ImGui.
class RunForm {
 public:
    /// A row for each policy of this build but the full cache, which always runs.
    RunForm();

    RunRequest request;
    std::vector<PolicyRow> rows;

    /// Another row of the same policy behind this one, with its parameters.
    void duplicate(size_t row);
    /// The last row of a policy stays. @returns whether the row went
    bool remove(size_t row);
    int n_ticked() const;

    /// What is wrong, first thing first; empty where it can be run. @param tokens as far as they were counted
    std::string problem(const std::optional<TokenCount>& tokens) const;
    /// What the budgets come to, one line each: "128 of 2000 entries kept (6.4 %), …"; the counts alone where the
    /// prompt's length is not known. @throws policies::BudgetError
    std::vector<std::string> budget_lines(const std::optional<TokenCount>& tokens) const;
    /// Runs that would be made, the full cache's included; 0 where the budgets cannot be read.
    int n_runs() const;

    /// The request with the ticked policies.
    RunRequest filled_in() const;

    nlohmann::json to_json() const;
    /// What cannot be understood, and policies that this build does not have, are left out.
    void from_json(const nlohmann::json& state);

 private:
    int next_id_ = 0;
};

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
