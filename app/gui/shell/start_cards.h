#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/gui/drawing/theme.h"

namespace kvscope::gui {

/// One thing to begin with.
struct StartCard {
    const char* title;
    const char* text;
    const char* action;  ///< what a click does, in a word or two
    std::function<void()> run;
};

/// What a window without a trace shows in its middle. @param open called with one of the recent traces
void draw_start_cards(const std::vector<StartCard>& cards, const std::vector<std::string>& recent_traces,
                      const std::function<void(const std::string&)>& open, const Theme& theme, const Fonts& fonts);

}  // namespace kvscope::gui
