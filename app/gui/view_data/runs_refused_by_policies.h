#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/gui/view_data/run_form.h"

namespace kvscope::gui {

/// Runs of the form that would fail, for all rows, ticked or not.
struct RefusedRuns {
    struct Refused {
        std::string budget{};          ///< see budget_text(); empty: any budget
        std::string reason{};          ///< one or several sentences
        std::optional<int64_t> least;  ///< smallest budget that the policy accepts, in entries
    };
    struct Row {
        int id = 0;            ///< see PolicyRow::id
        std::string policy{};  ///< e.g. "SnapKV" or "SnapKV (window=8)"
        bool ticked = false;
        int n_runs = 0;     ///< runs per prompt
        int n_refused = 0;  ///< runs per prompt that would fail
        std::vector<Refused> refused{};

        [[nodiscard]] bool can_run() const { return n_refused < n_runs; }
        /// Returns all reasons, one per line: "64: a budget of 64 entries is not above …".
        [[nodiscard]] std::string reasons() const;
        /// Returns a short reason, such as "not at 64: the policy needs at least 65 entries".
        [[nodiscard]] std::string brief() const;
    };
    std::vector<Row> rows;

    [[nodiscard]] const Row* find(int id) const;
    [[nodiscard]] int n_refused() const;  ///< failing runs per prompt, ticked policies only
    /// Returns why no ticked policy can run at any budget, or "" if at least one policy can run.
    [[nodiscard]] std::string problem() const;
};

struct BudgetNote {
    enum class Kind { fact, warning, error };
    Kind kind = Kind::fact;
    std::string text{};
    [[nodiscard]] bool operator==(const BudgetNote&) const = default;
};

/// Asks the policies which runs would fail. May read files, so call it on a worker thread.
[[nodiscard]] RefusedRuns find_refused_runs(const RunForm& form, const std::optional<TokenCount>& tokens);
/// Returns a stamp that changes with all inputs of find_refused_runs(), including the files that it reads.
[[nodiscard]] std::string stamp_of_refused_runs(const RunForm& form, const std::optional<TokenCount>& tokens);

/// Returns notes on refused budgets, on budgets that drop nothing, and on budgets of policies that keep every token.
[[nodiscard]] std::vector<BudgetNote> budget_notes(const RunForm& form, const std::optional<TokenCount>& tokens,
                                                   const RefusedRuns& check);

}  // namespace kvscope::gui
