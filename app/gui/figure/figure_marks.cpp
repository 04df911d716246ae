#include "app/gui/figure/figure_marks.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace kvscope::gui {
namespace {

using analysis::Axis;
using analysis::Dimension;
using analysis::Panel;

constexpr float least_cell = 5;  // pixels; smaller cells are marked by their row and column

/// Returns the cursor's item of the axis's kind, or −1.
int64_t number_of(Dimension dimension, const Panel& panel, const PreparedFigure& shown, const Cursor& cursor) {
    const bool is_of_layer = panel.subject.layer < 0 || panel.subject.layer == cursor.layer;
    switch (dimension) {
        case Dimension::layer:
            return cursor.layer;
        case Dimension::kv_head:
            return is_of_layer ? cursor.kv_head : -1;
        case Dimension::query_head:
            return is_of_layer ? cursor.query_head : -1;
        case Dimension::token:
            return panel.subject.trace < shown.traces.size() &&
                           shown.traces[panel.subject.trace] == std::pair{cursor.run.document, cursor.run.prompt}
                       ? cursor.first_token
                       : -1;
        case Dimension::step:
            return cursor.step;
        case Dimension::run:
        case Dimension::none:
            return -1;
    }
    return -1;
}

std::optional<double> place_on(const Axis& axis, const Panel& panel, const PreparedFigure& shown,
                               const Cursor& cursor) {
    if (axis.dimension == Dimension::run) {
        for (size_t i = 0; i < axis.numbers.size() && cursor.run.valid(); ++i) {
            const size_t trace = axis.traces.empty() ? panel.subject.trace : axis.traces[i];
            if (shown.run_of({.trace = trace, .run = axis.numbers[i]}) == cursor.run) return static_cast<double>(i);
        }
        return std::nullopt;
    }
    const int64_t number = number_of(axis.dimension, panel, shown, cursor);
    if (number < 0) return std::nullopt;
    if (axis.numbers.empty()) return static_cast<double>(number);
    const auto found = std::find(axis.numbers.begin(), axis.numbers.end(), number);
    if (found == axis.numbers.end()) return std::nullopt;
    return static_cast<double>(found - axis.numbers.begin());
}

void mark(const PreparedFigure& shown, const Panel& panel, const PlotFrame& frame, const Cursor& cursor, ImU32 color,
          ImDrawList* list) {
    const auto x = place_on(panel.x, panel, shown, cursor);
    const auto y = place_on(panel.y, panel, shown, cursor);
    if (x && !has_map(panel)) return draw_column_mark(frame, list, *x, color);
    const auto box = [&](double left, double right, double top, double bottom) {
        const ImVec2 a{frame.x_of(left), frame.y_of(top)}, b{frame.x_of(right), frame.y_of(bottom)};
        list->AddRect({std::min(a.x, b.x), std::min(a.y, b.y)}, {std::max(a.x, b.x), std::max(a.y, b.y)}, color, 0.0f,
                      1.5f);
    };
    const float cell = std::min(std::abs(frame.x_of(1) - frame.x_of(0)), std::abs(frame.y_of(1) - frame.y_of(0)));
    if (x && y && panel.x.dimension != panel.y.dimension && cell >= least_cell)
        return box(*x - 0.5, *x + 0.5, *y - 0.5, *y + 0.5);
    if (x) box(*x - 0.5, *x + 0.5, panel.y.min, panel.y.max);
    if (y) box(panel.x.min, panel.x.max, *y - 0.5, *y + 0.5);
}

}  // namespace

void mark_selected_and_hovered(const Context& context, const PreparedFigure& shown, const Panel& panel,
                               const PlotFrame& frame, ImDrawList* list) {
    mark(shown, panel, frame, context.session.hover(), packed(context.theme.hover, 0.5f), list);
    mark(shown, panel, frame, context.session.cursor(), packed(context.theme.accent), list);
}

}  // namespace kvscope::gui
