#pragma once

#include <cstdint>

#include "trace/reader.h"

namespace kvscope::trace {

/// Returns the number of tokens in a run's answer, end of text included, or 0 if no answer is recorded.
[[nodiscard]] std::int64_t answer_length(const Reader& reader, int prompt, int run);

}  // namespace kvscope::trace
