#pragma once

#include <string>

namespace kvscope::gui {

/// A tooltip of something in the current view that covers neither that nor what it is compared with: left or right of
/// the view, its lines broken where the room is narrow. Where the view leaves no room beside it, the tooltip stands
/// some lines below or above the mouse.
void begin_tooltip_beside();
void end_tooltip_beside();

void tooltip_beside(const std::string& text);

}  // namespace kvscope::gui
