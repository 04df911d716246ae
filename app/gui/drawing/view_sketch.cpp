#include "app/gui/drawing/view_sketch.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace kvscope::gui {
namespace {

ImU32 packed_at(analysis::ColorMap on_paper, double t, const Theme& theme) {
    return packed(analysis::color_at(adapt_color_map_to_theme(on_paper, theme), t));
}

std::optional<ImU32> color_of(char cell, const Theme& theme) {
    if (cell == '-') return packed(theme.ink_quiet, 0.5f);
    if (cell == '#') return packed(theme.ink);
    if (cell == '*') return packed(theme.accent);
    if (cell == 'a') return packed_at(analysis::ColorMap::blue_white_red, 0, theme);
    if (cell == 'b') return packed_at(analysis::ColorMap::blue_white_red, 1, theme);
    if (cell >= '0' && cell <= '9') return packed_at(analysis::ColorMap::viridis_reversed, (cell - '0') / 9.0, theme);
    return std::nullopt;
}

}  // namespace

std::vector<std::string_view> split_sketch_rows(const Sketch& sketch) {
    std::vector<std::string_view> rows;
    for (size_t from = 0; from < sketch.size();) {
        const size_t to = std::min(sketch.find('\n', from), sketch.size());
        if (to > from) rows.push_back(std::string_view(sketch).substr(from, to - from));
        from = to + 1;
    }
    return rows;
}

void draw_sketch(ImDrawList& list, const Sketch& sketch, ImVec2 from, ImVec2 size, const Theme& theme) {
    const auto rows = split_sketch_rows(sketch);
    if (rows.empty() || rows.front().empty()) return;
    // Edges on whole pixels avoid seams between cells.
    const auto edge = [](float begin, float length, size_t i, size_t n) {
        return std::round(begin + length * static_cast<float>(i) / static_cast<float>(n));
    };
    const size_t n_columns = rows.front().size();
    for (size_t row = 0; row < rows.size(); ++row) {
        const float top = edge(from.y, size.y, row, rows.size());
        const float bottom = edge(from.y, size.y, row + 1, rows.size());
        for (size_t column = 0; column < std::min(rows[row].size(), n_columns); ++column) {
            const auto color = color_of(rows[row][column], theme);
            if (!color) continue;
            const float left = edge(from.x, size.x, column, n_columns);
            list.AddRectFilled({left, top}, {edge(from.x, size.x, column + 1, n_columns), bottom}, *color);
        }
    }
}

}  // namespace kvscope::gui
