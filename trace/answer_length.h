#pragma once

#include <cstdint>

#include "trace/reader.h"

namespace kvscope::trace {

/// Tokens of a run's answer, the end of text included; 0 where none is recorded.
/// @throws what the reader throws
std::int64_t answer_length(const Reader& reader, int prompt, int run);

}  // namespace kvscope::trace
