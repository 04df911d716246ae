#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvscope::analysis {

enum class Lines {
    one,     ///< for a table cell or a name: line breaks become spaces
    several  ///< for a block of text: line breaks and tabs stay
};

/// Returns text as UTF-8 without terminal commands. ASCII control characters become pictures such as ␛. Other
/// control characters, separators and direction marks become codes such as ⟨U+202E⟩, and invalid bytes such as ⟨E4⟩.
[[nodiscard]] std::string terminal_text(std::string_view text, Lines lines);

/// Returns the width of a text on a terminal: 0 columns per combining character, 2 per wide character.
[[nodiscard]] size_t terminal_display_width(std::string_view text);

}  // namespace kvscope::analysis
