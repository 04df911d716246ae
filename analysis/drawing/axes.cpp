#include "analysis/drawing/axes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace kvscope::analysis {
namespace {

Axis axis_of(Dimension dimension, size_t n) {
    Axis axis;
    axis.dimension = dimension;
    axis.whole_numbers = true;
    axis.min = -0.5;
    axis.max = static_cast<double>(n) - 0.5;
    return axis;
}

Axis axis_of(Dimension dimension, const std::vector<int>& numbers) {
    Axis axis = axis_of(dimension, numbers.size());
    axis.numbers = numbers;
    const bool plain =
        !numbers.empty() && numbers.front() == 0 && numbers.back() == static_cast<int>(numbers.size()) - 1;
    if (plain) return axis;
    for (size_t i = 0; i < numbers.size(); ++i)
        axis.ticks.push_back({static_cast<double>(i), std::to_string(numbers[i])});
    return axis;
}

}  // namespace

Axis layer_axis(const std::vector<int>& layers) {
    Axis axis = axis_of(Dimension::layer, layers);
    axis.title = "Layer";
    return axis;
}

Axis head_axis(const std::vector<int>& heads, bool query_heads) {
    Axis axis = axis_of(query_heads ? Dimension::query_head : Dimension::kv_head, heads);
    axis.title = query_heads ? "Query head" : "KV head";
    return axis;
}

Axis head_axis(size_t n_heads, bool query_heads) {
    std::vector<int> heads(n_heads);
    std::iota(heads.begin(), heads.end(), 0);
    return head_axis(heads, query_heads);
}

Axis token_axis(size_t n_tokens) {
    Axis axis = axis_of(Dimension::token, n_tokens);
    axis.title = "Token position";
    return axis;
}

Axis name_axis(std::string title, const std::vector<std::string>& names, bool reversed) {
    Axis axis;
    axis.title = std::move(title);
    axis.min = -0.5;
    axis.max = static_cast<double>(names.size()) - 0.5;
    axis.reversed = reversed;
    for (const auto& name : names) axis.ticks.push_back({static_cast<double>(axis.ticks.size()), name});
    return axis;
}

HeatMap map_of_means(size_t rows, size_t columns) {
    HeatMap map;
    set_map_extent(map, rows, columns);
    map.values.assign(rows * columns, NAN);
    map.reduction = Reduction::mean;
    return map;
}

Panel make_layer_token_panel(const std::vector<int>& layers, size_t n_tokens) {
    Panel panel;
    panel.x = token_axis(n_tokens);
    panel.y = layer_axis(layers);
    panel.y.reversed = true;
    return panel;
}

void lay_out_maps(Figure& figure, size_t n_maps, size_t columns, size_t n_rows, double row_mm, double least_mm) {
    constexpr double page_mm = 190, between_mm = 5;
    figure.columns = columns;
    figure.rows = (n_maps + columns - 1) / columns;
    figure.shared_x = true;
    const double room_mm = page_mm / static_cast<double>(figure.rows) - between_mm;
    figure.panel_height_mm = std::clamp(row_mm * static_cast<double>(n_rows), least_mm, std::max(least_mm, room_mm));
}

Rgb layer_color(size_t i, size_t n) {
    return color_at(ColorMap::viridis, n < 2 ? 0.0 : 0.85 * static_cast<double>(i) / static_cast<double>(n - 1));
}

}  // namespace kvscope::analysis
