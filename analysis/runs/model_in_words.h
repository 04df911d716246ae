#pragma once

#include <string>

#include "trace/records/records.h"

namespace kvscope::analysis {

/// Describes the model in a figure's recipe: name, number type, dimensions and fingerprint.
[[nodiscard]] std::string model_in_words(const trace::ModelAttributes& model);

}  // namespace kvscope::analysis
