#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// What a view threw instead of drawing, and what it was to show.
struct ViewFailure {
    std::string message;
    std::string shown;  ///< the selected run and how it then was
};

/// A dockable window on the screen: a view and its place.
struct OpenView {
    const ViewKind* kind = nullptr;
    int number = 1;
    std::unique_ptr<View> view;
    bool open = true;
    bool is_drawn = false;  ///< at least once
    bool is_docked = false;
    bool focus = false;         ///< bring to the front in the next frame
    std::string left_layout{};  ///< of a view that is put away: a person had opened it in this layout besides
    std::string id() const;     ///< "retention-1"
    std::string title() const;  ///< "Retention###retention-1", "Retention 2###retention-2"
    /// While it is set the message is shown in the view's place: until a person tries again, or selects another run.
    std::optional<ViewFailure> failure{};
};

}  // namespace kvscope::gui
