#pragma once

#include <string>

namespace kvscope::gui {

/// Describes a click in this frame, e.g. "click in What-if: Keep"; empty: no click. Call once per frame. Names the item
/// if Dear ImGui knows its name.
std::string describe_click();

}  // namespace kvscope::gui
