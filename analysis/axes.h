#pragma once

#include <vector>

#include "analysis/figure.h"

/// Axes over layers, heads and tokens, and maps on such axes: item i is the interval from i - 1/2 to i + 1/2.
namespace kvscope::analysis {

/// Axis labeled with layer numbers. Consecutive layers from 0 are labeled as space permits, other lists completely.
Axis layer_axis(const std::vector<int>& layers);

/// Axis labeled with head numbers, as layer_axis().
Axis head_axis(const std::vector<int>& heads, bool query_heads);
/// Axis of all n heads.
Axis head_axis(size_t n_heads, bool query_heads);

Axis token_axis(size_t n_tokens);

/// Panel with tokens from left to right and layers from top to bottom.
Panel layers_by_tokens(const std::vector<int>& layers, size_t n_tokens);

/// Sets the size of a map and places it on such axes.
template <class Map>
void place_on_numbers(Map& map, size_t rows, size_t columns) {
    map.rows = rows;
    map.columns = columns;
    map.x_begin = map.y_begin = -0.5;
    map.x_end = static_cast<double>(columns) - 0.5;
    map.y_end = static_cast<double>(rows) - 0.5;
}

/// Arranges maps in rows of `columns` maps. A map is `row_mm` high per row of the map, reduced to at least `least_mm`
/// if the maps would not fit on a page.
void lay_out_maps(Figure& figure, size_t n_maps, size_t columns, size_t n_rows, double row_mm, double least_mm = 5);

/// Returns the color of the i-th of n layers, dark to light. The lightest is still visible on paper.
Rgb layer_color(size_t i, size_t n);

}  // namespace kvscope::analysis
