#pragma once

#include <vector>

#include "analysis/figure.h"

/// Axes that count what a trace has, and maps over them: the i-th layer, head or token is the interval from i - 1/2 to
/// i + 1/2.
namespace kvscope::analysis {

/// Labelled with the layers' numbers. Layers without a gap that begin at 0 get ticks where there is room; others are
/// labelled one by one.
Axis layer_axis(const std::vector<int>& layers);

/// The same of heads.
Axis head_axis(const std::vector<int>& heads, bool query_heads);
/// Of all n heads.
Axis head_axis(size_t n_heads, bool query_heads);

/// A prompt's token positions.
Axis token_axis(size_t n_tokens);

/// Tokens to the right, layers downwards.
Panel layers_by_tokens(const std::vector<int>& layers, size_t n_tokens);

/// Sets a map's size and places it on such axes.
template <class Map>
void place_on_numbers(Map& map, size_t rows, size_t columns) {
    map.rows = rows;
    map.columns = columns;
    map.x_begin = map.y_begin = -0.5;
    map.x_end = static_cast<double>(columns) - 0.5;
    map.y_end = static_cast<double>(rows) - 0.5;
}

/// Lays several maps out in rows of `columns`: each `row_mm` high for each of its `n_rows`, but not so high that they
/// would not all stand on a page, and at least `least_mm`.
void lay_out_maps(Figure& figure, size_t n_maps, size_t columns, size_t n_rows, double row_mm, double least_mm = 5);

/// The colour of the i-th of n layers: dark for the first, lighter for later ones, none too pale for paper.
Rgb layer_color(size_t i, size_t n);

}  // namespace kvscope::analysis
