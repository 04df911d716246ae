#pragma once

#include "app/gui/drawing/theme.h"
#include "app/gui/session/settings.h"
#include "app/gui/window/window.h"

namespace kvscope::gui {

/// Theme and text size of the app, which are stored in the settings.
class Appearance {
 public:
    Appearance(Window& window, Settings& settings);

    [[nodiscard]] const Theme& theme() const { return theme_; }
    void set_light(bool light);
    /// Sets the text size. A scale of 1 means 16 pixels, 0 means the scale of the display.
    void set_scale(float scale);

 private:
    void apply();

    Window& window_;
    Settings& settings_;
    Theme theme_;
};

}  // namespace kvscope::gui
