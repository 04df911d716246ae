#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/gui/session/selection.h"
#include "trace/records/records.h"

namespace kvscope::gui {

class Session;

[[nodiscard]] bool can_rename_run(const Session& session, const RunKey& run);

/// Returns the runs with the same policy, parameters and budget in other prompts of the trace.
[[nodiscard]] std::vector<RunKey> alike_runs_in_other_prompts(const Session& session, const RunKey& run);

/// Returns the reason why a run cannot have this label, or "" if it can.
[[nodiscard]] std::string label_problem(const Session& session, const RunKey& run, const std::string& label);

/// Saves a run's label in the annotations. Removes the saved label if `label` is empty or the recorded label.
/// @param in_all_prompts whether to rename alike_runs_in_other_prompts() as well, unless another run there has the
/// label
void set_run_label(Session& session, const RunKey& run, const std::string& label, bool in_all_prompts);

/// Names that the user has given to models, by fingerprint. They apply to all traces.
using ModelNames = std::map<std::string, std::string>;

/// Returns the displayed name of a model: the user's name, or the name in the trace.
[[nodiscard]] std::string displayed_model_name(const ModelNames& names, const trace::ModelAttributes& model);

/// Returns the names of a model without duplicates: the trace's name first, then the name in the model's metadata.
[[nodiscard]] std::vector<std::string> recorded_model_names(const trace::ModelAttributes& model);

/// Sets the user's name for a model. An invalid name or the name in the trace removes the user's name.
void set_user_model_name(ModelNames& names, const trace::ModelAttributes& model, const std::string& name);

}  // namespace kvscope::gui
