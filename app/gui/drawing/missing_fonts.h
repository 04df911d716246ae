#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::gui {

/// Returns the Debian and Ubuntu package with a font for the character. Empty for private-use and unassigned
/// characters.
std::string font_package(uint32_t character);

/// Reports a character that was drawn as a box.
void note_missing_character(uint32_t character);

/// Returns messages about missing fonts since the last call: one per package, and one for all characters without a
/// package. Each is returned only once.
std::vector<std::string> take_missing_fonts();

}  // namespace kvscope::gui
