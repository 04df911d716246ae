#pragma once

#include <string>
#include <vector>

#include "app/gui/layout/view_instance.h"
#include "app/gui/session/session.h"
#include "app/gui/window/window.h"

namespace kvscope::gui {

/// Draws views. If a view throws an exception, the message is shown in its place, and the other views are still drawn.
class ViewGuard {
 public:
    ViewGuard(Window& window, const Session& session) : window_(window), session_(session) {}

    void draw(OpenView& open, Context& context);
    [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }

 private:
    void note_failure(OpenView& open, const std::string& message);
    [[nodiscard]] std::string what_is_shown() const;

    Window& window_;
    const Session& session_;
    std::vector<std::string> failures_;
};

}  // namespace kvscope::gui
