#pragma once

#include <string_view>

namespace kvscope::engine::longbench {

/// Returns SequenceMatcher(None, a, b).ratio() of Python's difflib: twice the number of matched characters, divided by
/// the number of all characters. In a text b of 200 characters or more, frequent characters begin no match.
[[nodiscard]] double matched_share(std::u32string_view a, std::u32string_view b);

}  // namespace kvscope::engine::longbench
