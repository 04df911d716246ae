#pragma once

namespace kvscope::gui {

/// Stays on the current line if an item of this width in pixels fits. Returns whether it fits.
bool same_line_if_fits(float width);

}  // namespace kvscope::gui
