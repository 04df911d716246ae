#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "analysis/color_map.h"
#include "analysis/several_traces.h"
#include "analysis/shown_runs.h"
#include "analysis/subject_table.h"

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
Line line_difference(const Line& a, const Line& b, bool as_ratio, const std::string& where) {
    Line line = a;
    const size_t n = std::min(a.x.size(), b.x.size());
    if (!std::equal(a.x.begin(), a.x.begin() + static_cast<std::ptrdiff_t>(n), b.x.begin()))
        disagree(fmt::format("the points of {} have not the same x in A and B", where));
    line.x.resize(n);
    line.y.resize(n);
    line.low.clear();
    line.high.clear();
    for (size_t i = 0; i < n; ++i) line.y[i] = difference(a.y[i], b.y[i], as_ratio);
    return line;
}

/// Of one layer, head and name, whosever they are.
bool are_like(const Line& a, const Line& b) {
    return a.label == b.label && a.subject.layer == b.subject.layer && a.subject.head == b.subject.head;
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
            disagree(fmt::format("{} has {} curves in A and {} in B", of_a.title.empty() ? "the panel" : of_a.title,
                                 of_a.shapes.size(), of_b.shapes.size()));
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

/// Of the cell at a place in data coordinates; nothing outside the map.
std::optional<double> value_at(const HeatMap& map, double x, double y) {
    const double row = (y - map.y_begin) / (map.y_end - map.y_begin);
    const double column = (x - map.x_begin) / (map.x_end - map.x_begin);
    if (!(row >= 0 && row < 1 && column >= 0 && column < 1)) return {};
    return map.values[static_cast<size_t>(row * static_cast<double>(map.rows)) * map.columns +
                      static_cast<size_t>(column * static_cast<double>(map.columns))];
}

/// Text that stands on a map was set for the colours and the numbers of A alone: the prompt's words stay, numbers
/// become the difference.
void set_texts(Figure& figure) {
    for (Panel& panel : figure.panels) {
        const HeatMap* map = nullptr;
        for (const Shape& shape : panel.shapes)
            if (!map) map = std::get_if<HeatMap>(&shape);
        if (!map || map->rows == 0 || map->columns == 0) continue;
        const ColorScale& scale = figure.color_scales.at(map->color_scale);
        for (Shape& shape : panel.shapes) {
            auto* label = std::get_if<TextLabel>(&shape);
            if (!label) continue;
            const auto value = value_at(*map, label->x, label->y);
            if (!value) continue;
            const double shown = std::isfinite(*value) ? *value : 0;
            const auto ink_of = [&](double number) { return ink_on(color_at(scale.map, place_on(scale, number))); };
            label->color = ink_of(shown);
            for (TextLabel::Ink& ink : label->inks) {
                const double of_part = value_at(*map, ink.x, label->y).value_or(shown);
                ink.color = ink_of(std::isfinite(of_part) ? of_part : 0);
            }
            if (label->subject.token < 0) label->text = std::isfinite(*value) ? fmt::format("{:+.3g}", shown) : "";
        }
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

/// What the figure's maps and curves are of and their axes count.
std::vector<SubjectKey> keys_of(const Figure& figure) {
    bool of_runs = false;
    std::set<SubjectKey> keys;
    const auto take = [&](const Subject& of) {
        of_runs = of_runs || of.run >= 0;
        if (of.layer >= 0) keys.insert(SubjectKey::layer);
        if (of.head >= 0) keys.insert(SubjectKey::head);
    };
    const auto take_axes = [&](const Panel& panel) {
        const bool alike = panel.x.dimension == panel.y.dimension;
        for (const Axis* axis : {&panel.x, &panel.y}) {
            switch (axis->dimension) {
                case Dimension::none:
                    break;
                case Dimension::run:
                    of_runs = true;
                    break;
                case Dimension::layer:
                    alike ? keys.insert({SubjectKey::layer_a, SubjectKey::layer_b}) : keys.insert({SubjectKey::layer});
                    break;
                case Dimension::kv_head:
                case Dimension::query_head:
                    alike ? keys.insert({SubjectKey::head_a, SubjectKey::head_b}) : keys.insert({SubjectKey::head});
                    break;
                case Dimension::token:
                    alike ? keys.insert({SubjectKey::token_a, SubjectKey::token_b}) : keys.insert({SubjectKey::token});
                    break;
                case Dimension::step:
                    keys.insert(SubjectKey::step);
                    break;
            }
        }
    };
    for (const Panel& panel : figure.panels) {
        take_axes(panel);
        take(panel.subject);
        for (const Shape& shape : panel.shapes) take(subject_of(panel, shape));
    }
    if (of_runs) keys.insert({SubjectKey::run_a, SubjectKey::run_b});
    return {keys.begin(), keys.end()};
}

/// Whether there are rows of maps, or curves, and places along x that subjects do not tell apart.
std::pair<bool, bool> uncounted_axes(const Figure& figure) {
    bool rows = false, x = false;
    for (const Panel& panel : figure.panels) {
        x = x || panel.x.dimension == Dimension::none;
        for (const Shape& shape : panel.shapes) {
            const auto* line = std::get_if<Line>(&shape);
            const bool is_named = line && subject_of(panel, shape) == panel.subject && !line->label.empty();
            const bool is_map = std::holds_alternative<HeatMap>(shape) && panel.y.dimension == Dimension::none;
            rows = rows || is_named || is_map;
        }
    }
    return {rows, x};
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
                if (!like_it || !are_like(*line, *like_it))
                    disagree(fmt::format("{} of {} has no counterpart in B", line->label, where));
                *line = line_difference(*line, *like_it, as_ratio, where);
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
        if (figure.color_scales[i].of != sides.b.color_scales[i].of) figure.color_scales[i].of.clear();
    }
    set_limits(figure);
    set_texts(figure);
    figure.title += ", A − B";
    figure.caption = fmt::format("A − B ({}): {}", both, figure.caption);
    add_recipe(figure, sides.b, "B");
    return figure;
}

Table difference_numbers(const FigureDefinition& definition, const TracePart& a, const TracePart& b) {
    if (definition.difference_numbers) return definition.difference_numbers(std::array{a, b});
    const Sides sides = read_sides(definition, a, b);
    const Figure drawn = make_difference(definition, a, b);
    std::vector<std::variant<SubjectKey, Column>> columns = {Column{"panel", "Panel", "", ColumnType::text}};
    const std::vector<SubjectKey> keys = keys_of(drawn);
    columns.insert(columns.end(), keys.begin(), keys.end());
    const auto [has_rows, has_x] = uncounted_axes(drawn);
    if (has_rows) columns.emplace_back(Column{"row", "Row", "", ColumnType::text});
    if (has_x) columns.emplace_back(Column{"x", "x", "", ColumnType::real, 0});
    for (const auto& [name, title] : {std::pair{"a", "A"}, {"b", "B"}, {"difference", "A − B"}})
        columns.emplace_back(Column{name, title, "", ColumnType::real, 4});
    SubjectTable table(drawn.name + "-difference", drawn.title, std::move(columns));
    for (size_t p = 0; p < drawn.panels.size(); ++p) {
        const Panel& panel = drawn.panels[p];
        const std::string title = panel.part.empty() ? panel.title : panel.title + ", " + panel.part;
        const auto add = [&](SubjectPair of, const std::string& row, double x, double in_a, double in_b, double less) {
            of.b.run = sides.b.panels[p].subject.run;
            std::vector<Cell> cells = {title};
            if (has_rows) cells.emplace_back(row);
            if (has_x) cells.emplace_back(x);
            cells.insert(cells.end(), {in_a, in_b, less});
            table.add(of, std::move(cells));
        };
        for (size_t s = 0; s < sides.a.panels[p].shapes.size(); ++s) {
            const Shape& shown = panel.shapes[s];
            if (const auto* map = std::get_if<HeatMap>(&shown)) {
                const auto& of_a = std::get<HeatMap>(sides.a.panels[p].shapes[s]).values;
                const auto& of_b = std::get<HeatMap>(sides.b.panels[p].shapes[s]).values;
                for (size_t i = 0; i < map->values.size(); ++i) {
                    const size_t row = i / map->columns, column = i % map->columns;
                    add(subjects_of_cell(panel, *map, row, column), std::to_string(row), static_cast<double>(column),
                        static_cast<double>(of_a[i]), static_cast<double>(of_b[i]),
                        static_cast<double>(map->values[i]));
                }
            } else if (const auto* line = std::get_if<Line>(&shown)) {
                const auto& of_a = std::get<Line>(sides.a.panels[p].shapes[s]).y;
                const auto& of_b = std::get<Line>(sides.b.panels[p].shapes[s]).y;
                for (size_t i = 0; i < line->y.size(); ++i) {
                    const Subject of = subject_of_point(panel, shown, i);
                    add({of, of}, line->label, line->x[i], of_a[i], of_b[i], line->y[i]);
                }
            }
        }
    }
    return table.take();
}

}  // namespace kvscope::analysis
