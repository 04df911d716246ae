#include "analysis/several_traces.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/shown_runs.h"

namespace kvscope::analysis {
namespace {

bool has_map(const Panel& panel) {
    return std::any_of(panel.shapes.begin(), panel.shapes.end(),
                       [](const Shape& shape) { return std::holds_alternative<HeatMap>(shape); });
}

void widen(double& least, double& most, double other_least, double other_most) {
    least = std::min(least, other_least);
    most = std::max(most, other_most);
}

/// The limits of `other` become those of `figure`, too, where they are wider.
void take_scale(Figure& figure, const Figure& other) {
    for (size_t i = 0; i < std::min(figure.color_scales.size(), other.color_scales.size()); ++i) {
        ColorScale& scale = figure.color_scales[i];
        const ColorScale& like = other.color_scales[i];
        widen(scale.min, scale.max, like.min, like.max);
        scale.whole_numbers = scale.whole_numbers && like.whole_numbers;
        if (scale.min > 0 && like.scale == Scale::logarithmic) scale.scale = Scale::logarithmic;
    }
    for (size_t i = 0; i < std::min(figure.panels.size(), other.panels.size()); ++i) {
        Panel& panel = figure.panels[i];
        const Panel& like = other.panels[i];
        if (has_map(panel) || has_map(like)) continue;
        if (panel.x.ticks.empty() && like.x.ticks.empty()) widen(panel.x.min, panel.x.max, like.x.min, like.x.max);
        if (panel.y.scale == like.y.scale) widen(panel.y.min, panel.y.max, like.y.min, like.y.max);
    }
}

bool same_legends(const Figure& a, const Figure& b) {
    return std::equal(a.legend.begin(), a.legend.end(), b.legend.begin(), b.legend.end(),
                      [](const LegendEntry& one, const LegendEntry& other) {
                          return one.label == other.label && one.style.color == other.style.color;
                      });
}

void add_legend(Figure& joined, const Figure& figure, const std::string& name) {
    joined.legend.push_back({name + ":", LegendEntry::Symbol::none, {}});
    joined.legend.insert(joined.legend.end(), figure.legend.begin(), figure.legend.end());
}

}  // namespace

std::vector<TraceFigure> on_one_scale(std::span<const TracePart> parts,
                                      const std::function<Figure(const trace::Reader&, const FigureOptions&)>& make) {
    std::vector<TraceFigure> figures;
    for (const TracePart& part : parts) {
        TraceFigure& made = figures.emplace_back();
        try {
            made.figure = make(*part.reader, part.options);
        } catch (const NothingToShow& nothing) {
            made.nothing = nothing.what();
        }
    }
    // Twice over, so that the first learns of the last.
    for (TraceFigure& one : figures) {
        for (const TraceFigure& other : figures) {
            if (one.figure && other.figure) take_scale(*one.figure, *other.figure);
        }
    }
    return figures;
}

Figure side_by_side(std::vector<TraceFigure> figures, std::span<const TracePart> parts) {
    std::optional<Figure> joined;
    bool legends_are_alike = true;
    const Figure* first = nullptr;
    for (const TraceFigure& each : figures) {
        if (!each.figure) continue;
        if (!first) first = &*each.figure;
        legends_are_alike = legends_are_alike && same_legends(*first, *each.figure);
    }
    if (!first) throw NothingToShow(figures.empty() ? "no trace is open" : figures.front().nothing);
    for (size_t i = 0; i < figures.size(); ++i) {
        if (!figures[i].figure) continue;
        Figure& figure = *figures[i].figure;
        const std::string& name = parts[i].name;
        const size_t columns = joined ? joined->columns : 0;
        for (Panel& panel : figure.panels) {
            panel.subject.trace = i;
            for (Shape& shape : panel.shapes) {
                if (auto* line = std::get_if<Line>(&shape)) line->subject.trace = i;
                if (auto* points = std::get_if<Scatter>(&shape)) points->subject.trace = i;
                if (auto* label = std::get_if<TextLabel>(&shape)) label->subject.trace = i;
            }
            panel.column += columns;
            if (!name.empty()) panel.title = panel.title.empty() ? name : fmt::format("{}: {}", name, panel.title);
        }
        if (!joined) {
            joined = figure;
            if (!legends_are_alike) {
                joined->legend.clear();
                add_legend(*joined, figure, name);
            }
            continue;
        }
        for (size_t scale = 0; scale < std::min(joined->color_scales.size(), figure.color_scales.size()); ++scale) {
            if (joined->color_scales[scale].of != figure.color_scales[scale].of) joined->color_scales[scale].of.clear();
        }
        joined->columns += figure.columns;
        if (joined->row_heights != figure.row_heights) joined->row_heights.clear();
        joined->rows = std::max(joined->rows, figure.rows);
        if (!joined->column_widths.empty() && !figure.column_widths.empty())
            joined->column_widths.insert(joined->column_widths.end(), figure.column_widths.begin(),
                                         figure.column_widths.end());
        else
            joined->column_widths.clear();
        std::move(figure.panels.begin(), figure.panels.end(), std::back_inserter(joined->panels));
        if (!legends_are_alike) add_legend(*joined, figure, name);
        if (figure.caption != joined->caption) joined->caption += fmt::format(" Of {}: {}", name, figure.caption);
        joined->width_mm = std::max({joined->width_mm, figure.width_mm, 174.0});
        add_recipe(*joined, figure, name);
    }
    const auto all_like_first = [&](Axis Panel::*axis) {
        const Axis& like = joined->panels.front().*axis;
        return std::all_of(joined->panels.begin(), joined->panels.end(), [&](const Panel& panel) {
            return (panel.*axis).min == like.min && (panel.*axis).max == like.max;
        });
    };
    if (joined->panels.empty()) return *joined;
    joined->shared_x = joined->shared_x && all_like_first(&Panel::x);
    joined->shared_y = joined->shared_y && all_like_first(&Panel::y);
    return *joined;
}

void check_figure(const FigureDefinition& definition, std::span<const TracePart> parts) {
    std::string nothing;
    for (const TracePart& part : parts) {
        const std::string lacks = why_no_figure(definition, *part.reader, part.options);
        if (lacks.empty()) return;
        if (nothing.empty()) nothing = lacks;
    }
    throw NothingToShow(nothing.empty() ? "no trace is open" : nothing);
}

void check_difference(const FigureDefinition& definition, const TracePart& a, const TracePart& b) {
    for (const TracePart* part : {&a, &b}) definition.check(*part->reader, part->options);
}

Figure make_figure(const FigureDefinition& definition, std::span<const TracePart> parts) {
    if (definition.make_joint) return definition.make_joint(parts);
    if (parts.size() == 1) return definition.make(*parts.front().reader, parts.front().options);
    Figure figure = side_by_side(on_one_scale(parts, definition.make), parts);
    if (parts.front().options.width_mm > 0) figure.width_mm = parts.front().options.width_mm;
    return figure;
}

Table make_numbers(const FigureDefinition& definition, std::span<const TracePart> parts) {
    if (parts.size() == 1) return definition.numbers(*parts.front().reader, parts.front().options);
    std::optional<Table> joined;
    std::string nothing;
    for (const TracePart& part : parts) {
        try {
            Table table = definition.numbers(*part.reader, part.options);
            for (Row& row : table.rows) row.cells.insert(row.cells.begin(), part.name);
            if (!joined) {
                joined = Table{table.name, table.title, table.columns, {}};
                joined->columns.insert(joined->columns.begin(), {"trace", "Trace", "", ColumnType::text});
            }
            std::move(table.rows.begin(), table.rows.end(), std::back_inserter(joined->rows));
        } catch (const NothingToShow& lacks) {
            if (nothing.empty()) nothing = lacks.what();
        }
    }
    if (!joined) throw NothingToShow(nothing);
    return *joined;
}

}  // namespace kvscope::analysis
