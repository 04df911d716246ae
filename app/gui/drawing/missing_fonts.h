#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::gui {

/// Returns the Debian package with a font for the character, or an empty text for an unassigned or private character.
[[nodiscard]] std::string font_package(uint32_t character);

void note_missing_character(uint32_t character);

/// Returns new messages about missing fonts: one per package, and one for all characters without a package.
std::vector<std::string> take_missing_font_messages();

}  // namespace kvscope::gui
