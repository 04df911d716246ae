#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/records.h"

namespace kvscope::gui {

/// What a person calls models, by fingerprint: the same in every trace.
using ModelNames = std::map<std::string, std::string>;

/// What a model is called on the screen: as a person has chosen, else as the trace has it.
std::string model_name(const ModelNames& names, const trace::ModelAttributes& model);

/// What its own files call it: by the trace's name, which is the file's where that says more, and by their metadata.
/// The first is the trace's; none stands there twice.
std::vector<std::string> own_names(const trace::ModelAttributes& model);

/// The trace's own name, or what can be no label, as nothing typed, takes it away.
void choose_model_name(ModelNames& names, const trace::ModelAttributes& model, const std::string& name);

}  // namespace kvscope::gui
