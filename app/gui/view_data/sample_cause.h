#pragma once

#include <string>

#include "trace/reader.h"

namespace kvscope::gui {

/// Returns "niah-500-0.3-0, snapkv:window=8 @ 64", which names a row of task results.
/// @param setting TaskGroup::label() @param budget TaskGroup::budget
[[nodiscard]] std::string sample_title(const std::string& sample, const std::string& setting,
                                       const std::string& budget);

/// Returns a sentence on the cause (analysis/measures/wrong_answer.h) of a wrong answer, or "" if none is recorded.
/// @param title sample_title() of the row
[[nodiscard]] std::string sample_cause(const trace::Reader& reader, const std::string& title);

}  // namespace kvscope::gui
