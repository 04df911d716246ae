#pragma once

#include "app/gui/shell/notices.h"
#include "app/gui/shell/open_views.h"
#include "app/gui/shell/settings_store.h"
#include "app/gui/shell/trace_sidecars.h"
#include "app/gui/shell/window.h"

namespace kvscope::gui {

/// Saves what a person has changed some seconds after the last input, and before the window closes: settings with the
/// layout, annotations, and how traces are looked at.
class Autosave {
 public:
    /// @param keeps_layout whether the next window begins with this one's layout
    Autosave(Window& window, SettingsStore& settings, TraceSidecars& sidecars, const OpenViews& views, Notices& notices,
             bool keeps_layout)
        : window_(window),
          settings_(settings),
          sidecars_(sidecars),
          views_(views),
          notices_(notices),
          keeps_layout_(keeps_layout) {}

    /// Something was clicked or typed in this frame.
    void note_input();
    /// Once a frame; the window is drawn again when it is time to save.
    void end_frame();
    /// Saves everything. @returns false where a person's annotations would be lost, the first time
    bool may_leave();

 private:
    void save();

    Window& window_;
    SettingsStore& settings_;
    TraceSidecars& sidecars_;
    const OpenViews& views_;
    Notices& notices_;
    bool keeps_layout_;
    bool knows_recent_ = false;  ///< something was opened, and saving it is under way or could not be done
    double save_at_ = -1;        ///< time of the next save; negative: nothing has happened since the last
};

}  // namespace kvscope::gui
