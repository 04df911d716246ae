#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/tasks/api/task.h"

namespace kvscope::engine {

/// Fields that a line must have in addition to "context". Other fields may be missing, null or empty.
enum class LineNeeds { question_and_answers, nothing };

/// Reads a sample from one line of a JSONL file: {"context": "…", "question": "…", "answers": ["…"]}. Further fields
/// are ignored. Sets the context, the question and the answers.
/// @param place for messages, such as "samples.jsonl:3" @throws UsageError with place, expected and found field
[[nodiscard]] TaskSample read_sample_line(std::string_view text, const std::string& place, LineNeeds needs);

/// Calls `use` with the text and the number, from 1, of each line that is not blank, until `use` returns false.
void for_each_line_with_text(std::string_view text, const std::function<bool(std::string_view line, int number)>& use);

}  // namespace kvscope::engine
