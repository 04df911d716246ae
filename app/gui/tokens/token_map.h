#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "app/gui/drawing/heat_map.h"
#include "app/gui/view/view.h"

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
    /// Lines of the tooltip for a cell.
    std::function<void(int row, int64_t token)> tooltip;
};

/// What became of a token map on the screen.
struct DrawnTokenMap {
    float left = 0;  ///< of the shown tokens, pixels on the screen
    float right = 0;
    int entered = -1;            ///< the row that was double-clicked, or −1 …
    int64_t entered_token = -1;  ///< … and the token in it
    bool is_visible() const { return right > left; }
};

/// Draws a token map on the session's token axis, with its rows' numbers on the left, selection, hover, marks and pins,
/// and takes its mouse: hover is transient, click is sticky, Shift-click extends the tokens, drag pans, the wheel
/// zooms, Ctrl-drag zooms into a box. Of maps in windows above one another all end at the same x.
/// @param size height in pixels; a width of 0 is all there is
DrawnTokenMap draw_token_map(Context& context, const char* id, ImVec2 size, const TokenMap& map);

/// A line with the positions of the shown tokens, below maps of `n_tokens` that lie at `place`.
void draw_token_axis(const Context& context, const DrawnTokenMap& place, int64_t n_tokens);

/// A thin map of the whole prompt, as wide as the maps above it, with the shown part as a brush that can be dragged.
void draw_token_overview(Context& context, const char* id, const DrawnTokenMap& place, float height,
                         const Document& document, const HeatMap& map, const MapColors& colors);

}  // namespace kvscope::gui
