#pragma once

#include <string>

namespace kvscope::gui {

/// Call once in each frame. Where a mouse button went down in it: "click in What-if: Keep", with the name of what is
/// under the mouse as far as Dear ImGui has it; else empty.
std::string describe_click();

}  // namespace kvscope::gui
