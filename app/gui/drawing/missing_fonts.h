#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::gui {

/// The package of Debian and Ubuntu with a font for the character; empty where no font can have it: private use and
/// characters that are not assigned.
std::string font_package(uint32_t character);

/// To be called for a character that was drawn as a box.
void note_missing_character(uint32_t character);

/// A sentence for each package, or script without one, that lacked since the last call; each once while the program
/// runs.
std::vector<std::string> take_missing_fonts();

}  // namespace kvscope::gui
