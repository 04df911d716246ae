#pragma once

#include <functional>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/saved/recent_files.h"

namespace kvscope::gui {

struct StartCard {
    const char* title;
    const char* text;
    const char* action;  ///< label of the button
    std::function<void()> run;
};

struct RecentActions {
    std::function<void(const std::filesystem::path&)> open_trace;
    std::function<void(const std::filesystem::path&)> go_on;  ///< continues an unfinished trace; empty: not possible
    std::function<void(const std::filesystem::path&)> load_model;  ///< loads a model; empty: models are not listed
};

void draw_start_cards(const std::vector<StartCard>& cards, const RecentFiles& recent, const RecentActions& actions,
                      const Theme& theme, const Fonts& fonts);

}  // namespace kvscope::gui
