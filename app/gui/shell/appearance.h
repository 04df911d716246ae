#pragma once

#include "app/gui/drawing/theme.h"
#include "app/gui/session/settings.h"
#include "app/gui/shell/window.h"

namespace kvscope::gui {

/// How the window looks: the theme and the size of texts, as the settings have them.
class Appearance {
 public:
    /// Applies what the settings say. Both are kept.
    Appearance(Window& window, Settings& settings);

    const Theme& theme() const { return theme_; }
    void set_light(bool light);
    /// @param scale of texts; 1: 16 pixels, 0: the display's own
    void set_scale(float scale);

 private:
    void apply();

    Window& window_;
    Settings& settings_;
    Theme theme_;
};

}  // namespace kvscope::gui
