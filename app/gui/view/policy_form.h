#pragma once

#include <optional>

#include "app/gui/session/refused_runs.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Selects every policy that can run with its settings.
void tick_all_that_can_run(RunForm& form, const RefusedRuns& check);
void tick_none(RunForm& form);

/// Draws the policies with their parameters and why they cannot run. `asker` guards file dialogs.
void draw_policies(const Context& context, const Lifetime& asker, RunForm& form, const RefusedRuns& check);

/// Draws the field for the budgets and the resulting entries. With `same_height`, the list scrolls.
void draw_budgets(const Theme& theme, RunForm& form, const std::optional<TokenCount>& tokens, bool same_height = false);

/// Draws which selected policies or budgets cannot run and why, and which budgets drop nothing.
void draw_budget_notes(const Theme& theme, const RunForm& form, const std::optional<TokenCount>& tokens,
                       const RefusedRuns& check);

}  // namespace kvscope::gui
