#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/session/session.h"
#include "app/gui/view/view.h"
#include "app/gui/window/window.h"

namespace kvscope::gui {

/// The exception that a view threw while drawing, and the selection at that time.
struct ViewFailure {
    std::string message;
    std::string shown;  ///< selected run and state of the view at that time
};

struct OpenView {
    const ViewKind* kind = nullptr;
    int number = 1;
    std::unique_ptr<View> view;
    bool open = true;
    bool is_drawn = false;  ///< whether the view was drawn at least once
    bool is_docked = false;
    bool focus = false;                       ///< whether the view comes to the front in the next frame
    std::string left_layout{};                ///< for a closed view that is kept: layout to which it had been added
    [[nodiscard]] std::string id() const;     ///< e.g. "retention-1"
    [[nodiscard]] std::string title() const;  ///< e.g. "Retention###retention-1" or "Retention 2###retention-2"
    /// Error that is shown instead of the view until the user retries or selects another run.
    std::optional<ViewFailure> failure{};
};

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
