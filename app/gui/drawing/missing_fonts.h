#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::gui {

/// The package of Debian and Ubuntu with a font for the character; empty for private use and what is not assigned,
/// which fonts made for it alone have.
std::string font_package(uint32_t character);

/// To be called for a character that was drawn as a box.
void note_missing_character(uint32_t character);

/// A sentence for each package that lacked since the last call, and one for all characters without a package; each
/// once while the program runs.
std::vector<std::string> take_missing_fonts();

}  // namespace kvscope::gui
