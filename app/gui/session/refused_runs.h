#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/gui/session/run_form.h"

namespace kvscope::gui {

/// Which runs of a form would fail, found before any is made. Of all its rows, ticked or not.
struct RefusedRuns {
    struct Refused {
        std::string budget{};          ///< as budget_text has it; empty: whatever the budget
        std::string reason{};          ///< a sentence, or several
        std::optional<int64_t> least;  ///< entries that the policy would take
    };
    struct Row {
        int id = 0;            ///< PolicyRow::id
        std::string policy{};  ///< "SnapKV", "SnapKV (window=8)"
        bool ticked = false;
        int n_runs = 0;     ///< of each prompt
        int n_refused = 0;  ///< of them
        std::vector<Refused> refused{};

        bool can_run() const { return n_refused < n_runs; }
        /// All reasons, a line each: "64: a budget of 64 entries is not above …".
        std::string reasons() const;
        /// In a few words: "not at 64: it needs at least 65 entries", "needs its file: set importance".
        std::string brief() const;
    };
    std::vector<Row> rows;

    /// nullptr where a row was not there when it was checked.
    const Row* find(int id) const;
    int n_refused() const;  ///< of the ticked policies' runs, of each prompt
    /// Why no policy that is ticked can run at any budget; empty where one can.
    std::string problem() const;
};

/// What is said of the budgets, beneath what they come to.
struct BudgetNote {
    enum class Kind { fact, warning, error };
    Kind kind = Kind::fact;
    std::string text{};
    bool operator==(const BudgetNote&) const = default;
};

/// Asks the policies themselves. May read their files: beside the window, or in tests. @param tokens as far as counted
RefusedRuns find_refused_runs(const RunForm& form, const std::optional<TokenCount>& tokens);
/// Changes with everything that find_refused_runs depends on; looks at whether files are there, and at when they were
/// written.
std::string stamp_of_refused_runs(const RunForm& form, const std::optional<TokenCount>& tokens);

/// Budgets that ticked policies cannot take, those that drop nothing, and what they mean to policies that keep every
/// token. Nothing where the budgets cannot be read.
std::vector<BudgetNote> budget_notes(const RunForm& form, const std::optional<TokenCount>& tokens,
                                     const RefusedRuns& check);

}  // namespace kvscope::gui
