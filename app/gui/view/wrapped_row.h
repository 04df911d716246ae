#pragma once

namespace kvscope::gui {

/// Stays on the current line if an item of this width fits. Returns whether it does.
bool same_line_if_fits(float width);

}  // namespace kvscope::gui
