#pragma once

#include <string>
#include <vector>

#include "app/gui/session/session.h"

namespace kvscope::gui {

[[nodiscard]] bool can_rename_run(const Session& session, const RunKey& run);

/// Returns the runs with the same policy, parameters and budget in other prompts of the trace.
[[nodiscard]] std::vector<RunKey> alike_runs_in_other_prompts(const Session& session, const RunKey& run);

/// Returns the reason why a run cannot have this label, or "" if it can.
[[nodiscard]] std::string label_problem(const Session& session, const RunKey& run, const std::string& label);

/// Saves a run's label in the annotations. Removes the saved label if `label` is empty or the recorded label.
/// @param in_all_prompts whether to rename alike_runs_in_other_prompts() as well, unless another run there has the
/// label
void set_run_label(Session& session, const RunKey& run, const std::string& label, bool in_all_prompts);

}  // namespace kvscope::gui
