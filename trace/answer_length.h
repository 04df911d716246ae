#pragma once

#include <cstdint>
#include <optional>

#include "trace/reader.h"

namespace kvscope::trace {

/// How many tokens each answer was to have at most, as the trace's recipe says; nullopt in traces made elsewhere.
std::optional<std::int64_t> wanted_answer_length(const Reader& reader);

/// Tokens of a run's answer, the end of text included; 0 where none is recorded.
/// @throws what the reader throws
std::int64_t answer_length(const Reader& reader, int prompt, int run);

}  // namespace kvscope::trace
