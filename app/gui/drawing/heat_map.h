#pragma once

#include <imgui.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "analysis/color_map.h"
#include "app/gui/drawing/pyramid.h"

namespace kvscope::gui {

/// How a map's values become colours: the part [map_begin, map_end] of a colour table between `min` and `max`. Values
/// below `min` are ground where `ground_below_min`.
struct MapColors {
    analysis::ColorMap map = analysis::ColorMap::viridis;
    float map_begin = 0;
    float map_end = 1;
    float min = 0;
    float max = 1;
    bool logarithmic = false;
    bool ground_below_min = false;
    std::vector<ImU32> classes;  ///< where not empty, value i has colour i instead, and `map` is unused
    ImU32 ground = 0;
    bool operator==(const MapColors&) const = default;
};

/// The colour of a value as the shader draws it.
ImU32 color_of(const MapColors& colors, float value);

/// A rectangle of a map, in cells; an edge below its opposite turns the map round.
struct MapWindow {
    double left = 0;
    double right = 1;
    double top = 0;
    double bottom = 1;
    bool operator==(const MapWindow&) const = default;
};

/// A grid on the GPU with all its levels of detail, drawn by one shader. A level is one texture whatever its width: its
/// columns are folded into strips of `strip_columns` that stand below each other, since 16,384 is a common limit.
/// Panning and zooming upload nothing. Created, drawn and destroyed on the window's thread.
class HeatMap {
 public:
    static constexpr int strip_columns = 4096;

    explicit HeatMap(const Pyramid& pyramid);
    ~HeatMap();
    HeatMap(const HeatMap&) = delete;
    HeatMap& operator=(const HeatMap&) = delete;

    size_t rows() const { return rows_; }
    size_t columns() const { return columns_; }

    /// Fills the rectangle from min to max (screen coordinates) with the window of the map; what lies beside the map is
    /// ground. Where the map goes before the frame is drawn, it is shown all the same.
    void draw(ImDrawList* list, ImVec2 min, ImVec2 max, const MapWindow& window, const MapColors& colors) const;

 private:
    struct Level {
        unsigned texture = 0;
        int columns = 0;
    };
    /// What was drawn of the map, with a pixel a row where rows are higher; kept until it changes.
    struct Picture {
        unsigned texture = 0;
        int width = 0;
        int height = 0;
        MapWindow window;
        MapColors colors;
        bool is_drawn = false;
        int frame = 0;
    };
    Picture& picture_for(const MapWindow& window, const MapColors& colors, int width, int height) const;

    mutable std::vector<Picture> pictures_;
    size_t rows_;
    size_t columns_;
    Reduce reduce_;
    std::vector<Level> levels_;
};

}  // namespace kvscope::gui
