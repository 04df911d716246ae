#pragma once

#include <imgui.h>

#include <cstddef>
#include <vector>

#include "analysis/drawing/color_map.h"

namespace kvscope::gui {

/// How cells on the same pixel are combined.
enum class Reduce {
    maximum,           ///< a single kept token among 100,000 stays visible; for classes, the highest one
    largest_magnitude  ///< for differences; keeps the sign
};

/// A grid and its levels of detail: level k has ceil(columns / 2^k) columns. NaN means unknown.
struct Pyramid {
    struct Level {
        size_t columns = 0;
        std::vector<float> values;  ///< (rows, columns)
    };
    size_t rows = 0;
    Reduce reduce = Reduce::maximum;
    std::vector<Level> levels;
    [[nodiscard]] size_t columns() const { return levels.empty() ? 0 : levels.front().columns; }
    [[nodiscard]] float at(size_t row, size_t column) const { return levels.front().values[row * columns() + column]; }
};

/// Throws std::invalid_argument unless there are rows * columns values.
[[nodiscard]] Pyramid make_pyramid(std::vector<float> values, size_t rows, size_t columns, Reduce reduce);

/// Combines two cells. Returns NaN only if both are NaN.
[[nodiscard]] float combine_cells(Reduce reduce, float a, float b);

/// Maps values from min to max to the part [map_begin, map_end] of a color map.
struct MapColors {
    analysis::ColorMap map = analysis::ColorMap::viridis;
    float map_begin = 0;
    float map_end = 1;
    float min = 0;
    float max = 1;
    bool logarithmic = false;
    bool ground_below_min = false;  ///< values below `min` have the background color
    std::vector<ImU32> classes;     ///< if not empty, value i has color i and `map` is unused
    ImU32 ground = 0;
    [[nodiscard]] bool operator==(const MapColors&) const = default;
};

[[nodiscard]] ImU32 map_value_to_color(const MapColors& colors, float value);

/// A rectangle of a map, in cells. If right < left or bottom < top, the map is drawn mirrored.
struct MapWindow {
    double left = 0;
    double right = 1;
    double top = 0;
    double bottom = 1;
    [[nodiscard]] bool operator==(const MapWindow&) const = default;
};

/// A grid on the GPU, with one texture per level of detail. Panning and zooming upload nothing. UI thread only.
class HeatMap {
 public:
    static constexpr int strip_columns = 4096;  ///< columns per strip; textures are often limited to 16,384 columns

    explicit HeatMap(const Pyramid& pyramid);
    ~HeatMap();
    HeatMap(const HeatMap&) = delete;
    HeatMap& operator=(const HeatMap&) = delete;

    [[nodiscard]] size_t rows() const { return rows_; }
    [[nodiscard]] size_t columns() const { return columns_; }

    /// The map may be destroyed before the frame is drawn. Areas outside the map have the background color.
    void draw(ImDrawList* list, ImVec2 min, ImVec2 max, const MapWindow& window, const MapColors& colors) const;

 private:
    struct Level {
        unsigned texture = 0;
        int columns = 0;
    };
    struct Picture {
        unsigned texture = 0;
        int width = 0;
        int height = 0;
        MapWindow window;
        MapColors colors;
        bool is_drawn = false;
        int frame = 0;
    };
    [[nodiscard]] Picture& picture_for(const MapWindow& window, const MapColors& colors, int width, int height) const;

    mutable std::vector<Picture> pictures_;
    size_t rows_;
    size_t columns_;
    Reduce reduce_;
    std::vector<Level> levels_;
};

}  // namespace kvscope::gui
