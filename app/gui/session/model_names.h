#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/records/records.h"

namespace kvscope::gui {

/// Names that the user has given to models, by fingerprint. They apply to all traces.
using ModelNames = std::map<std::string, std::string>;

/// Returns the displayed name of a model: the user's name, or the name in the trace.
[[nodiscard]] std::string displayed_model_name(const ModelNames& names, const trace::ModelAttributes& model);

/// Returns the names of a model without duplicates: the trace's name first, then the name in the model's metadata.
[[nodiscard]] std::vector<std::string> recorded_model_names(const trace::ModelAttributes& model);

/// Sets the user's name for a model. An invalid name or the name in the trace removes the user's name.
void set_user_model_name(ModelNames& names, const trace::ModelAttributes& model, const std::string& name);

}  // namespace kvscope::gui
