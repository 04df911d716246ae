#pragma once

#include <string>

#include "trace/records.h"

namespace kvscope::analysis {

/// Name, type, shape and fingerprint, as a figure's recipe has them.
std::string model_in_words(const trace::ModelAttributes& model);

}  // namespace kvscope::analysis
