#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "app/gui/drawing/heat_map.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Heat maps on the GPU, updated when their pyramids change.
class MapStore {
 public:
    [[nodiscard]] const HeatMap& get(const std::string& slot, const std::shared_ptr<const Pyramid>& pyramid);
    void drop_unused();

 private:
    struct Entry {
        std::shared_ptr<const Pyramid> source;
        std::unique_ptr<HeatMap> map;
        bool used = true;
    };
    std::unordered_map<std::string, Entry> entries_;
};

/// A map with tokens on the x axis and layers or heads on the y axis.
struct TokenMap {
    const Document* document = nullptr;
    RunKey run;  ///< run that a click selects, or invalid
    const HeatMap* map = nullptr;
    MapColors colors;
    bool rows_are_heads = false;  ///< whether rows are heads of one layer, not layers
    int layer = -1;               ///< layer of the heads, or −1 if rows are layers
    std::function<void(int row, int64_t token)> tooltip;
};

/// Position of a drawn token map, and the cell that was double-clicked.
struct DrawnTokenMap {
    float left = 0;  ///< left and right edge of the shown tokens in screen pixels
    float right = 0;
    int entered = -1;            ///< row that was double-clicked, or −1
    int64_t entered_token = -1;  ///< token that was double-clicked, or −1
    [[nodiscard]] bool is_visible() const { return right > left; }
};

/// Draws a token map with row numbers, selection, marks and pins on the session's token axis. The mouse selects, pans
/// and zooms. Stacked maps end at the same x. @param size in pixels; 0 is the available width
[[nodiscard]] DrawnTokenMap draw_token_map(Context& context, const char* id, ImVec2 size, const TokenMap& map);

void draw_token_axis(const Context& context, const DrawnTokenMap& place, int64_t n_tokens);

/// Draws a thin map of the whole prompt below the maps. A draggable brush marks the shown part.
void draw_token_overview(Context& context, const char* id, const DrawnTokenMap& place, float height,
                         const Document& document, const HeatMap& map, const MapColors& colors);

}  // namespace kvscope::gui
