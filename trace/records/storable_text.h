// Text and time in the form that a trace stores.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace kvscope::trace {

/// Returns valid UTF-8 for HDF5: an invalid byte (e.g. of a cut character) becomes U+FFFD, and NUL becomes U+2400.
[[nodiscard]] std::string storable_text(std::string_view text);

/// Returns the beginning of a file's text for a message: in quotation marks, control characters as visible symbols.
[[nodiscard]] std::string quoted_text(std::string_view text);

/// Formats a time, e.g. "2025-01-31T12:00:00Z".
[[nodiscard]] std::string utc_text(std::time_t time);

}  // namespace kvscope::trace
