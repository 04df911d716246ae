#pragma once

#include <optional>

#include "app/gui/view/view.h"
#include "app/gui/view_data/runs_refused_by_policies.h"

namespace kvscope::gui {

/// Selects every policy that can run with its parameters.
void tick_policies_that_can_run(RunForm& form, const RefusedRuns& check);
void untick_all_policies(RunForm& form);

/// Draws the policies, their parameters, and why some policies cannot run. The lifetime `asker` guards file dialogs.
void draw_policy_choices(const Context& context, const Lifetime& asker, RunForm& form, const RefusedRuns& check);

/// Draws the budget field and the resulting entries. With `same_height`, the list of entries scrolls and does not grow.
void draw_budget_field(const Theme& theme, RunForm& form, const std::optional<TokenCount>& tokens,
                       bool same_height = false);

/// Lists the selected policies and budgets that cannot run, with the reasons, and the budgets that drop nothing.
void draw_budget_notes(const Theme& theme, const RunForm& form, const std::optional<TokenCount>& tokens,
                       const RefusedRuns& check);

}  // namespace kvscope::gui
