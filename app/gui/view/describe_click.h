#pragma once

#include <string>

namespace kvscope::gui {

/// Describes a click in this frame, e.g. "click in What-if: Keep", or returns an empty text. Call once per frame. The
/// description names the item if Dear ImGui knows the item's name.
[[nodiscard]] std::string describe_click();

}  // namespace kvscope::gui
