#pragma once

#include <map>
#include <string>
#include <utility>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Questions by ResultRow::sample_id, and whether policies saw the question.
using QuestionsOfSamples = std::map<std::pair<std::string, bool>, std::string>;

/// Returns the questions of a task's samples, which only the recipe contains.
[[nodiscard]] QuestionsOfSamples questions_of_samples(const trace::Reader& reader);

}  // namespace kvscope::analysis
