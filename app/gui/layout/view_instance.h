#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/gui/view/view.h"

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

}  // namespace kvscope::gui
