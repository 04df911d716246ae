#pragma once

#include <functional>
#include <set>
#include <string>

#include "app/gui/window/notices.h"

namespace kvscope::gui {

/// Draws menus, dialogs and other parts that are not views. Reports an exception once and draws the other parts.
class FrameGuard {
 public:
    explicit FrameGuard(Notices& notices) : notices_(notices) {}

    /// Calls `draw`. A notice about an exception names `part`, e.g. "the menus".
    void attempt(const char* part, const std::function<void()>& draw);

 private:
    Notices& notices_;
    std::set<std::string> told_;
};

}  // namespace kvscope::gui
