#pragma once

#include <string>
#include <vector>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Whether a run can be given a label: one of the trace, which a what-if is not.
bool can_rename(const Session& session, const RunKey& run);

/// The runs of a trace's other prompts that are of the same policy, parameters and budget.
std::vector<RunKey> alike_in_other_prompts(const Session& session, const RunKey& run);

/// Another run of the prompt that has this label already, in words; empty: there is none.
std::string why_not_called(const Session& session, const RunKey& run, const std::string& label);

/// Gives a run a label, kept beside the trace; an empty one, or the recorded one, takes it away.
/// @param in_all_prompts alike_in_other_prompts() are called so, too, but for those in whose prompt another run is
void rename(Session& session, const RunKey& run, const std::string& label, bool in_all_prompts);

}  // namespace kvscope::gui
