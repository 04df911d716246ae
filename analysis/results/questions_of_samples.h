#pragma once

#include <map>
#include <string>
#include <utility>

#include "common/json.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Questions by ResultRow::sample_id, and whether policies saw the question.
using QuestionsOfSamples = std::map<std::pair<std::string, bool>, std::string>;

/// Returns the questions of a task's samples, which only the recipe contains: in the list "prompts", or in the list
/// "questions" of imported results.
[[nodiscard]] QuestionsOfSamples questions_of_samples(const trace::Reader& reader);

/// Returns the list "questions" of a recipe.
[[nodiscard]] nlohmann::ordered_json json_of_questions(const QuestionsOfSamples& questions);

}  // namespace kvscope::analysis
