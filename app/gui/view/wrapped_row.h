#pragma once

namespace kvscope::gui {

/// Goes on in the same line where an item of this width still fits. @returns whether it does
bool same_line_if_fits(float width);

}  // namespace kvscope::gui
