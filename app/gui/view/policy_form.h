#pragma once

#include <optional>

#include "app/gui/session/refused_runs.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Every policy that can run as it is set, or none.
void tick_all_that_can_run(RunForm& form, const RefusedRuns& check);
void tick_none(RunForm& form);

/// The part of the run's form with the policies, each with its parameters and, where it cannot run, a mark that says
/// why.
/// Ticking moves no row. @param asker of the view, for file dialogs
void draw_policies(const Context& context, const Lifetime& asker, RunForm& form, const RefusedRuns& check);

/// The part with the budgets: the field and what they come to. @param tokens as far as they were counted
/// @param same_height a line for each budget, whatever is ticked; more of them scroll
void draw_budgets(const Theme& theme, RunForm& form, const std::optional<TokenCount>& tokens, bool same_height = false);

/// Which ticked policies cannot run, or not at all budgets, and why; which budgets drop nothing. Lines that come and go
/// as policies are ticked.
void draw_budget_notes(const Theme& theme, const RunForm& form, const std::optional<TokenCount>& tokens,
                       const RefusedRuns& check);

}  // namespace kvscope::gui
