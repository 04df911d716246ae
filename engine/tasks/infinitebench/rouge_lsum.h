#pragma once

#include <string_view>

namespace kvscope::engine::infinitebench {

/// Returns the F1 of rougeLsum, as the package rouge-score 0.1.2 computes it without stemmer: each line is a sentence,
/// and words are runs of a-z and 0-9 in lower case.
[[nodiscard]] double rouge_lsum(std::string_view prediction, std::string_view answer);

}  // namespace kvscope::engine::infinitebench
