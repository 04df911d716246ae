#pragma once

#include <span>
#include <string>
#include <vector>

#include "trace/reader.h"

namespace kvscope::cli {

/// Returns the number of the prompt in each trace; 0 in a trace without prompts.
/// @param text a number, which need not exist, or the prompt's name, also as the name of its file: "story.txt" for
/// "story"
/// @throws FigureError if no prompt of a trace, or several, have the name
[[nodiscard]] std::vector<int> prompt_numbers(std::span<const trace::Reader> readers, const std::string& text);

}  // namespace kvscope::cli
