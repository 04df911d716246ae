#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "app/gui/heat_map.h"
#include "app/gui/view.h"

namespace kvscope::gui {

/// Maps on the GPU, made from pyramids when those change.
class MapStore {
 public:
    /// The map of a slot; made anew where the pyramid is another than last time.
    const HeatMap& get(const std::string& slot, const std::shared_ptr<const Pyramid>& pyramid);
    /// Drops maps that were not asked for since the last call.
    void drop_unused();

 private:
    struct Entry {
        std::shared_ptr<const Pyramid> source;
        std::unique_ptr<HeatMap> map;
        bool used = true;
    };
    std::unordered_map<std::string, Entry> entries_;
};

/// What one map of tokens (across) and layers or heads (down) shows.
struct TokenMap {
    const Document* document = nullptr;
    RunKey run;  ///< selected with a click; invalid: none
    const HeatMap* map = nullptr;
    MapColors colors;
    bool rows_are_heads = false;  ///< else layers
    int layer = -1;               ///< of the heads
    bool show_token_axis = true;  ///< numbers below
    /// Lines of the tooltip for a cell.
    std::function<void(int row, int64_t token)> tooltip;
};

/// Draws a token map on the session's token axis, with selection, hover, marks and pins, and takes its mouse: hover is
/// transient, click is sticky, Shift-click extends the tokens, drag pans, the wheel zooms, Ctrl-drag zooms into a box.
/// @returns the row that was double-clicked, or −1
int draw_token_map(Context& context, const char* id, ImVec2 size, const TokenMap& map);

/// A thin map of the whole prompt with the shown part as a brush that can be dragged.
void draw_token_overview(Context& context, const char* id, float height, const Document& document, const HeatMap& map,
                         const MapColors& colors);

}  // namespace kvscope::gui
