#pragma once

#include <string>
#include <vector>

#include "analysis/drawing/figure.h"

/// Axes and maps on which item i covers the interval from i - 1/2 to i + 1/2.
namespace kvscope::analysis {

[[nodiscard]] Axis layer_axis(const std::vector<int>& layers);

[[nodiscard]] Axis head_axis(const std::vector<int>& heads, bool query_heads);
[[nodiscard]] Axis head_axis(size_t n_heads, bool query_heads);

[[nodiscard]] Axis token_axis(size_t n_tokens);

[[nodiscard]] Axis name_axis(std::string title, const std::vector<std::string>& names, bool reversed);

/// Returns a panel with tokens from left to right and layers from top to bottom.
[[nodiscard]] Panel make_layer_token_panel(const std::vector<int>& layers, size_t n_tokens);

template <class Map>
void set_map_extent(Map& map, size_t rows, size_t columns) {
    map.rows = rows;
    map.columns = columns;
    map.x_begin = map.y_begin = -0.5;
    map.x_end = static_cast<double>(columns) - 0.5;
    map.y_end = static_cast<double>(rows) - 0.5;
}

/// Returns a map without values, whose pixels show the mean of their cells.
[[nodiscard]] HeatMap map_of_means(size_t rows, size_t columns);

/// Arranges maps in rows of `columns` maps. Each row of a map is `row_mm` high, or less if the page is too small.
void lay_out_maps(Figure& figure, size_t n_maps, size_t columns, size_t n_rows, double row_mm, double least_mm = 5);

/// Returns the i-th of n layer colors, from dark to light.
[[nodiscard]] Rgb layer_color(size_t i, size_t n);

}  // namespace kvscope::analysis
