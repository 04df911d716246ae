#pragma once

#include <functional>
#include <set>
#include <string>

#include "app/gui/shell/notices.h"

namespace kvscope::gui {

/// Draws the parts of a frame that are not views. An exception is reported once as a notice, and the remaining parts
/// are drawn.
class FrameGuard {
 public:
    explicit FrameGuard(Notices& notices) : notices_(notices) {}

    /// Calls `draw`. The notice about an exception names `part`, e.g. "the menus".
    void attempt(const char* part, const std::function<void()>& draw);

 private:
    Notices& notices_;
    std::set<std::string> told_;
};

}  // namespace kvscope::gui
