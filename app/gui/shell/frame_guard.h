#pragma once

#include <functional>
#include <set>
#include <string>

#include "app/gui/shell/notices.h"

namespace kvscope::gui {

/// Draws the parts of a frame that are no views: what one throws is told once, and the rest of the frame is drawn.
class FrameGuard {
 public:
    explicit FrameGuard(Notices& notices) : notices_(notices) {}

    /// @param part named in the notice: "the menus"
    void attempt(const char* part, const std::function<void()>& draw);

 private:
    Notices& notices_;
    std::set<std::string> told_;
};

}  // namespace kvscope::gui
