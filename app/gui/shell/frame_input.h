#pragma once

namespace kvscope::gui {

/// Whether the mouse or keyboard was used in this frame.
bool has_input();

}  // namespace kvscope::gui
