#include "app/gui/window/appearance.h"

#include <algorithm>

namespace kvscope::gui {

Appearance::Appearance(Window& window, Settings& settings) : window_(window), settings_(settings) { apply(); }

void Appearance::apply() {
    const float scale = settings_.ui_scale > 0 ? settings_.ui_scale : window_.content_scale();
    theme_ = apply_theme(settings_.light ? Brightness::light : Brightness::dark, scale);
}

void Appearance::set_light(bool light) {
    settings_.light = light;
    apply();
}

void Appearance::set_scale(float scale) {
    settings_.ui_scale = scale <= 0 ? 0 : std::clamp(scale, 0.5f, 4.0f);
    apply();
}

}  // namespace kvscope::gui
