#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/shell/recent_files.h"

namespace kvscope::gui {

/// One thing to begin with.
struct StartCard {
    const char* title;
    const char* text;
    const char* action;  ///< what a click does, in a word or two
    std::function<void()> run;
};

/// What is done with the recent files.
struct RecentActions {
    std::function<void(const std::filesystem::path&)> open_trace;
    std::function<void(const std::filesystem::path&)> go_on;       ///< with an unfinished trace; empty: that cannot be
    std::function<void(const std::filesystem::path&)> load_model;  ///< empty: models are not listed
};

/// What a window without a trace shows in its middle.
void draw_start_cards(const std::vector<StartCard>& cards, const RecentFiles& recent, const RecentActions& actions,
                      const Theme& theme, const Fonts& fonts);

}  // namespace kvscope::gui
