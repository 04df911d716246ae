#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope {

/// Begin and end of a part of a text, in bytes.
using ByteRange = std::pair<size_t, size_t>;

/// Returns each place of a phrase in the text, ascending. The character before or after a place does not continue its
/// first or last word, so "3" does not occur in "13" (for ASCII letters and digits). Case matters. Omits blank phrases.
/// @param first the byte from which places may begin
[[nodiscard]] std::vector<ByteRange> find_phrases(std::string_view text, std::span<const std::string> phrases,
                                                  size_t first = 0);

}  // namespace kvscope
