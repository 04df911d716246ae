#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvscope::analysis {

enum class Lines {
    one,     ///< a table's cell, a name in a sentence: line breaks become spaces
    several  ///< a block of text: line breaks and tabs stay
};

/// Any text as UTF-8 that commands no terminal and moves no neighbour: control characters of ASCII as their pictures
/// (␛ for an escape), those of Latin-1, line and paragraph separators and whatever turns the direction of writing as
/// ⟨U+202E⟩, bytes that are no character as ⟨E4⟩. What is clean comes back as it is.
std::string terminal_text(std::string_view text, Lines lines);

/// Columns that a terminal gives to a text: none for combining characters, two for wide ones.
size_t terminal_columns(std::string_view text);

}  // namespace kvscope::analysis
