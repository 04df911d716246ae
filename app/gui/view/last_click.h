#pragma once

#include <string>

namespace kvscope::gui {

/// Describes a click in this frame, e.g. "click in What-if: Keep"; empty if there was none. Call once per frame. The
/// item's name is given if Dear ImGui knows it.
std::string describe_click();

}  // namespace kvscope::gui
