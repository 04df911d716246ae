#pragma once

#include "app/gui/layout/open_views.h"
#include "app/gui/saved/settings_store.h"
#include "app/gui/saved/trace_sidecars.h"
#include "app/gui/window/notices.h"
#include "app/gui/window/window.h"

namespace kvscope::gui {

/// Saves settings, layout, annotations and view states a few seconds after the last input and before the app closes.
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
    /// Saves everything. Returns TraceSidecars::may_leave().
    [[nodiscard]] bool may_leave();

 private:
    void save();

    Window& window_;
    SettingsStore& settings_;
    TraceSidecars& sidecars_;
    const OpenViews& views_;
    Notices& notices_;
    bool keeps_layout_;
    bool knows_recent_ = false;  ///< whether a new recent file has not been saved yet
    double save_at_ = -1;        ///< time of the next save; negative: nothing to save
};

}  // namespace kvscope::gui
