// Text as the trace can hold it, and the time as it writes it.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace kvscope::trace {

/// Valid UTF-8 without NUL: each byte that belongs to no character becomes U+FFFD, NUL becomes U+2400.
/// A generated text may end in the middle of a character, and HDF5 ends texts at a NUL.
std::string storable_text(std::string_view text);

/// A file's text within a message, with its quotation marks: its beginning, as `storable_text` has it, and control
/// characters as their pictures.
std::string quoted_text(std::string_view text);

/// "2025-01-31T12:00:00Z".
std::string utc_text(std::time_t time);

}  // namespace kvscope::trace
