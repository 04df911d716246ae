#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "analysis/color_map.h"
#include "analysis/several_traces.h"
#include "analysis/shown_runs.h"

namespace kvscope::analysis {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

[[noreturn]] void disagree(const std::string& what) {
    throw NothingToShow("A − B needs the same shape on both sides: " + what);
}

/// A − B of two numbers, or on a logarithmic axis A ÷ B.
double difference(double a, double b, bool as_ratio) {
    if (!as_ratio) return a - b;
    return a > 0 && b > 0 ? a / b : nan;
}

HeatMap map_difference(const HeatMap& a, const HeatMap& b, const std::string& where) {
    if (a.rows != b.rows || a.columns != b.columns)
        disagree(
            fmt::format("{} has {} × {} cells in A and {} × {} in B", where, a.rows, a.columns, b.rows, b.columns));
    HeatMap map = a;
    for (size_t i = 0; i < map.values.size(); ++i) map.values[i] -= b.values[i];
    map.reduction = Reduction::magnitude;
    return map;
}

/// As far as both curves go.
Line line_difference(const Line& a, const Line& b, bool as_ratio) {
    Line line = a;
    const size_t n = std::min(a.x.size(), b.x.size());
    line.x.resize(n);
    line.y.resize(n);
    line.low.clear();
    line.high.clear();
    for (size_t i = 0; i < n; ++i) line.y[i] = difference(a.y[i], b.y[i], as_ratio);
    return line;
}

bool is_map(const Panel& panel) {
    return std::any_of(panel.shapes.begin(), panel.shapes.end(),
                       [](const Shape& shape) { return std::holds_alternative<HeatMap>(shape); });
}

std::vector<std::string> labels_of(const Axis& axis) {
    std::vector<std::string> labels;
    for (const auto& tick : axis.ticks) labels.push_back(tick.label);
    return labels;
}

/// The figures of both, of which every panel of one has its like in the other.
struct Sides {
    Figure a, b;
};

Sides read_sides(const FigureDefinition& definition, const TracePart& a, const TracePart& b) {
    Sides sides{definition.make(*a.reader, a.options), definition.make(*b.reader, b.options)};
    if (sides.a.panels.size() != sides.b.panels.size()) {
        disagree(
            fmt::format("A ({}) has {} panels, B ({}) has {}: choose the same runs, layers and heads on both sides",
                        a.name, sides.a.panels.size(), b.name, sides.b.panels.size()));
    }
    for (size_t p = 0; p < sides.a.panels.size(); ++p) {
        const Panel& of_a = sides.a.panels[p];
        const Panel& of_b = sides.b.panels[p];
        if (of_a.shapes.size() != of_b.shapes.size()) {
            disagree(
                fmt::format("{} has {} curves in A and {} in B", of_a.title, of_a.shapes.size(), of_b.shapes.size()));
        }
        if (is_map(of_a) && labels_of(of_a.x) != labels_of(of_b.x)) {
            disagree(fmt::format("the {} axis of {} has not the same labels in the same order in A and B",
                                 of_a.x.title.empty() ? "x" : of_a.x.title, of_a.title));
        }
        if (of_a.y.title != of_b.y.title) disagree(fmt::format("A is by {}, B by {}", of_a.y.title, of_b.y.title));
    }
    return sides;
}

/// Symmetric around no difference.
void set_limits(Figure& figure) {
    double most = 0;
    for (const Panel& panel : figure.panels) {
        for (const Shape& shape : panel.shapes) {
            const auto* map = std::get_if<HeatMap>(&shape);
            if (!map) continue;
            for (const float value : map->values) {
                if (std::isfinite(value)) most = std::max(most, std::abs(static_cast<double>(value)));
            }
        }
    }
    for (ColorScale& scale : figure.color_scales) {
        scale.map = ColorMap::blue_white_red;
        scale.map_begin = 0;
        scale.map_end = 1;
        scale.scale = Scale::linear;
        scale.background_label.clear();
        scale.title = "A − B: " + scale.title;
        scale.whole_numbers = false;
        scale.max = most > 0 ? most : 1;
        scale.min = -scale.max;
    }
}

void set_axis(Panel& panel, bool as_ratio) {
    double farthest = 0;
    for (const Shape& shape : panel.shapes) {
        const auto* line = std::get_if<Line>(&shape);
        if (!line) continue;
        for (const double y : line->y) {
            if (std::isfinite(y)) farthest = std::max(farthest, std::abs(as_ratio ? std::log10(y) : y));
        }
    }
    panel.y.ticks.clear();
    panel.y.title = (as_ratio ? "A ÷ B: " : "A − B: ") + panel.y.title;
    if (as_ratio) {
        const double most = std::pow(10, std::max(farthest * 1.05, 0.05));
        panel.y.min = 1 / most;
        panel.y.max = most;
    } else {
        panel.y.max = std::max(farthest * 1.08, 1e-9);
        panel.y.min = -panel.y.max;
    }
    LineStyle grey;
    grey.color = {120, 120, 120};
    grey.width_pt = 0.5;
    panel.shapes.emplace_back(Rule{true, as_ratio ? 1.0 : 0.0, "", grey});
}

}  // namespace

Figure make_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b) {
    if (definition.make_difference) return definition.make_difference(std::array{a, b});
    Sides sides = read_sides(definition, a, b);
    Figure figure = std::move(sides.a);
    const std::string both = fmt::format("A: {}, B: {}", a.name, b.name);
    for (size_t p = 0; p < figure.panels.size(); ++p) {
        Panel& panel = figure.panels[p];
        const Panel& other = sides.b.panels[p];
        const bool as_ratio = panel.y.scale == Scale::logarithmic;
        if (figure.panels.size() == 1 && !panel.title.empty() && a.name != b.name)
            panel.title = fmt::format("{} − {}", a.name, b.name);
        else if (panel.title != other.title)
            panel.title = fmt::format("{} − {}", panel.title, other.title);
        panel.note = panel.part;
        bool has_map = false;
        for (size_t l = 0; l < panel.shapes.size(); ++l) {
            const std::string where = panel.title.empty() ? "the map" : panel.title;
            if (auto* map = std::get_if<HeatMap>(&panel.shapes[l])) {
                const auto* like = std::get_if<HeatMap>(&other.shapes[l]);
                if (!like) disagree(where + " is a map in A alone");
                *map = map_difference(*map, *like, where);
                has_map = true;
            } else if (auto* line = std::get_if<Line>(&panel.shapes[l])) {
                const auto* like_it = std::get_if<Line>(&other.shapes[l]);
                if (!like_it || like_it->label != line->label)
                    disagree(fmt::format("{} of {} has no counterpart in B", line->label, where));
                *line = line_difference(*line, *like_it, as_ratio);
            } else if (std::holds_alternative<Scatter>(panel.shapes[l])) {
                throw NothingToShow("A − B of points is not drawn: both traces can be shown side by side");
            }
        }
        if (has_map && panel.x.min != other.x.min) panel.x.title += " (of A)";
        if (!has_map) set_axis(panel, as_ratio);
    }
    // Bands are not subtracted.
    std::erase_if(figure.legend, [](const LegendEntry& entry) { return entry.symbol == LegendEntry::Symbol::patch; });
    if (figure.shared_y) {
        for (Panel& panel : figure.panels) {
            for (const Panel& other : figure.panels) {
                panel.y.min = std::min(panel.y.min, other.y.min);
                panel.y.max = std::max(panel.y.max, other.y.max);
            }
        }
    }
    for (size_t i = 0; i < std::min(figure.color_scales.size(), sides.b.color_scales.size()); ++i) {
        std::string& title = figure.color_scales[i].title;
        if (title != sides.b.color_scales[i].title) title = title.substr(0, title.find(", "));
    }
    set_limits(figure);
    figure.title += ", A − B";
    figure.caption = fmt::format("A − B ({}): {}", both, figure.caption);
    add_recipe(figure, sides.b, "B");
    return figure;
}

Table difference_numbers(const FigureDefinition& definition, const TracePart& a, const TracePart& b) {
    if (definition.difference_numbers) return definition.difference_numbers(std::array{a, b});
    const Sides sides = read_sides(definition, a, b);
    const Figure drawn = make_difference(definition, a, b);
    Table table;
    table.name = drawn.name + "-difference";
    table.title = drawn.title;
    table.columns = {{"panel", "Panel", "", ColumnType::text}, {"row", "Row", "", ColumnType::text},
                     {"x", "x", "", ColumnType::real, 0},      {"a", "A", "", ColumnType::real, 4},
                     {"b", "B", "", ColumnType::real, 4},      {"difference", "A − B", "", ColumnType::real, 4}};
    for (size_t p = 0; p < drawn.panels.size(); ++p) {
        for (size_t l = 0; l < sides.a.panels[p].shapes.size(); ++l) {
            const Shape& shown = drawn.panels[p].shapes[l];
            const Panel& panel = drawn.panels[p];
            const std::string title = panel.part.empty() ? panel.title : panel.title + ", " + panel.part;
            if (const auto* map = std::get_if<HeatMap>(&shown)) {
                const auto& of_a = std::get<HeatMap>(sides.a.panels[p].shapes[l]).values;
                const auto& of_b = std::get<HeatMap>(sides.b.panels[p].shapes[l]).values;
                for (size_t i = 0; i < map->values.size(); ++i) {
                    table.rows.push_back({{title, std::to_string(i / map->columns),
                                           static_cast<double>(i % map->columns), static_cast<double>(of_a[i]),
                                           static_cast<double>(of_b[i]), static_cast<double>(map->values[i])}});
                }
            } else if (const auto* line = std::get_if<Line>(&shown)) {
                const auto& of_a = std::get<Line>(sides.a.panels[p].shapes[l]).y;
                const auto& of_b = std::get<Line>(sides.b.panels[p].shapes[l]).y;
                for (size_t i = 0; i < line->y.size(); ++i)
                    table.rows.push_back({{title, line->label, line->x[i], of_a[i], of_b[i], line->y[i]}});
            }
        }
    }
    return table;
}

}  // namespace kvscope::analysis
