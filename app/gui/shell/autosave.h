#pragma once

#include "app/gui/shell/notices.h"
#include "app/gui/shell/open_views.h"
#include "app/gui/shell/settings_store.h"
#include "app/gui/shell/trace_sidecars.h"
#include "app/gui/shell/window.h"

namespace kvscope::gui {

/// Saves the user's changes a few seconds after the last input and before the app closes. Saved are the settings with
/// the layout, the annotations, and how each trace is viewed.
class Autosave {
 public:
    Autosave(Window& window, SettingsStore& settings, TraceSidecars& sidecars, const OpenViews& views, Notices& notices,
             bool keeps_layout)
        : window_(window),
          settings_(settings),
          sidecars_(sidecars),
          views_(views),
          notices_(notices),
          keeps_layout_(keeps_layout) {}

    void note_input();
    /// Saves if the next save is due. Call once per frame.
    void end_frame();
    /// Saves everything. Returns false, the first time, if annotations could not be saved and would be lost.
    bool may_leave();

 private:
    void save();

    Window& window_;
    SettingsStore& settings_;
    TraceSidecars& sidecars_;
    const OpenViews& views_;
    Notices& notices_;
    bool keeps_layout_;
    bool knows_recent_ = false;  ///< whether recently opened files are not saved yet
    double save_at_ = -1;        ///< time of the next save; negative: nothing to save
};

}  // namespace kvscope::gui
