#include "analysis/figures_of_several_traces.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/runs/shown_runs.h"

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

template <class Scales>
auto like(Scales& scales, const ColorScale& scale) {
    return std::find_if(scales.begin(), scales.end(), [&](const ColorScale& one) { return one.title == scale.title; });
}

/// Widens the limits of `figure` to include those of `other`.
void take_scale(Figure& figure, const Figure& other) {
    for (ColorScale& scale : figure.color_scales) {
        const auto found = like(other.color_scales, scale);
        if (found == other.color_scales.end()) continue;
        widen(scale.min, scale.max, found->min, found->max);
        scale.whole_numbers = scale.whole_numbers && found->whole_numbers;
        if (scale.min > 0 && found->scale == Scale::logarithmic) scale.scale = Scale::logarithmic;
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

void name_trace(Figure& figure, size_t trace, const std::string& name) {
    for (Panel& panel : figure.panels) {
        panel.subject.trace = trace;
        for (Shape& shape : panel.shapes) {
            if (auto* line = std::get_if<Line>(&shape)) line->subject.trace = trace;
            if (auto* points = std::get_if<Scatter>(&shape)) points->subject.trace = trace;
            if (auto* label = std::get_if<TextLabel>(&shape)) label->subject.trace = trace;
        }
        panel.trace_name = name;
        if (!name.empty()) panel.title = panel.title.empty() ? name : fmt::format("{}: {}", name, panel.title);
    }
}

double width_of(const std::vector<Figure*>& figures, double asked) {
    if (asked > 0) return asked;
    double width = figures.size() > 1 ? 174.0 : 0;
    for (const Figure* figure : figures) width = std::max(width, figure->width_mm);
    return width;
}

/// Whether the panels fit side by side. Figures with several pages are always placed side by side.
bool fit_beside(const std::vector<Figure*>& figures, double width_mm) {
    constexpr double least_column_mm = 14;  // enough for a short title and tick labels
    size_t columns = 0;
    for (const Figure* figure : figures) {
        columns += figure->columns;
        for (const Panel& panel : figure->panels)
            if (panel.page > 0) return true;
    }
    return figures.size() == 1 || static_cast<double>(columns) * least_column_mm <= width_mm;
}

/// Appends `more` to `sizes`. If one list is empty, which means equal sizes, the result is empty.
void append_sizes(std::vector<double>& sizes, const std::vector<double>& more) {
    if (sizes.empty() || more.empty())
        sizes.clear();
    else
        sizes.insert(sizes.end(), more.begin(), more.end());
}

void add_beside(Figure& joined, Figure& figure) {
    for (Panel& panel : figure.panels) panel.column += joined.columns;
    joined.columns += figure.columns;
    joined.rows = std::max(joined.rows, figure.rows);
    append_sizes(joined.column_widths, figure.column_widths);
    if (joined.row_heights != figure.row_heights) joined.row_heights.clear();
    std::move(figure.panels.begin(), figure.panels.end(), std::back_inserter(joined.panels));
}

void add_below(Figure& joined, Figure& figure) {
    for (Panel& panel : figure.panels) panel.row += joined.rows;
    joined.rows += figure.rows;
    joined.columns = std::max(joined.columns, figure.columns);
    append_sizes(joined.row_heights, figure.row_heights);
    if (joined.column_widths != figure.column_widths) joined.column_widths.clear();
    std::move(figure.panels.begin(), figure.panels.end(), std::back_inserter(joined.panels));
}

void add_scales(Figure& joined, Figure& figure) {
    std::vector<size_t> places;
    for (const ColorScale& scale : figure.color_scales) {
        const auto found = like(joined.color_scales, scale);
        places.push_back(static_cast<size_t>(found - joined.color_scales.begin()));
        if (found == joined.color_scales.end())
            joined.color_scales.push_back(scale);
        else if (found->of != scale.of)
            found->of.clear();
    }
    for (Panel& panel : figure.panels)
        for (Shape& shape : panel.shapes)
            if (auto* map = std::get_if<HeatMap>(&shape)) map->color_scale = places.at(map->color_scale);
}

void add_words(Figure& joined, const Figure& figure, const std::string& name) {
    if (figure.caption != joined.caption) joined.caption += fmt::format(" For {}: {}", name, figure.caption);
    add_recipe(joined, figure, name);
}

bool all_are_alike(const Figure& figure, Axis Panel::*axis) {
    const Axis& like = figure.panels.front().*axis;
    return std::all_of(figure.panels.begin(), figure.panels.end(), [&](const Panel& panel) {
        return (panel.*axis).min == like.min && (panel.*axis).max == like.max;
    });
}

}  // namespace

std::vector<TraceFigure> make_figures_on_one_scale(
    std::span<const TracePart> parts, const std::function<Figure(const trace::Reader&, const FigureOptions&)>& make) {
    std::vector<TraceFigure> figures;
    for (const TracePart& part : parts) {
        TraceFigure& made = figures.emplace_back();
        try {
            made.figure = make(*part.reader, part.options);
        } catch (const NothingToShow& nothing) {
            made.nothing = nothing.what();
        }
    }
    // Each figure takes the limits of all others, so that all limits are equal.
    for (TraceFigure& one : figures) {
        for (const TraceFigure& other : figures) {
            if (one.figure && other.figure) take_scale(*one.figure, *other.figure);
        }
    }
    return figures;
}

Figure joined_figure(std::vector<TraceFigure> figures, std::span<const TracePart> parts) {
    std::vector<Figure*> there;
    for (size_t i = 0; i < figures.size(); ++i) {
        if (!figures[i].figure) continue;
        there.push_back(&*figures[i].figure);
        name_trace(*there.back(), i, parts[i].name);
    }
    if (there.empty()) throw NothingToShow(figures.empty() ? "no trace is open" : figures.front().nothing);
    const bool legends_are_alike =
        std::all_of(there.begin(), there.end(), [&](const Figure* each) { return same_legends(*there[0], *each); });
    const double width_mm = width_of(there, parts.front().options.width_mm);
    const bool stand_below = !fit_beside(there, width_mm);
    Figure joined = *there.front();
    if (!legends_are_alike) joined.legend.clear();
    for (size_t i = 0; i < figures.size(); ++i) {
        if (!figures[i].figure) continue;
        Figure& figure = *figures[i].figure;
        if (!legends_are_alike) add_legend(joined, figure, parts[i].name);
        if (&figure == there.front()) continue;
        add_words(joined, figure, parts[i].name);
        add_scales(joined, figure);
        (stand_below ? add_below : add_beside)(joined, figure);
    }
    if (there.size() > 1) joined.width_mm = width_mm;
    joined.trace_by_trace = stand_below;
    if (joined.panels.empty() || stand_below) return joined;
    joined.shared_x = joined.shared_x && all_are_alike(joined, &Panel::x);
    joined.shared_y = joined.shared_y && all_are_alike(joined, &Panel::y);
    return joined;
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
    unpaired_runs(definition, a, b);  // throws if there are no pairs
}

Figure make_figure(const FigureDefinition& definition, std::span<const TracePart> parts) {
    const auto make = [&] {
        if (definition.make_joint) return definition.make_joint(parts);
        if (parts.size() == 1) return definition.make(*parts.front().reader, parts.front().options);
        return joined_figure(make_figures_on_one_scale(parts, definition.make), parts);
    };
    Figure figure = make();
    add_prompt_to_title(figure, definition, parts);
    return figure;
}

void add_prompt_to_title(Figure& figure, const FigureDefinition& definition, std::span<const TracePart> parts) {
    std::string prompts;
    for (const TracePart& part : parts) {
        const trace::Reader& reader = *part.reader;
        const int prompt = part.options.prompt;
        if (definition.is_of_prompt && !definition.is_of_prompt(part.options)) continue;
        if (reader.n_prompts() < 2 || prompt < 0 || prompt >= reader.n_prompts()) continue;
        const std::string text = fmt::format("{}prompt {} ({}), one of {}", part.name.empty() ? "" : part.name + ": ",
                                             prompt, reader.prompt(prompt).name, reader.n_prompts());
        if (prompts.find(text) == std::string::npos) prompts += (prompts.empty() ? "" : "; ") + text;
    }
    if (prompts.empty()) return;
    figure.title += "; " + prompts;
    figure.caption += fmt::format(" Shown: {}.", prompts);
}

Table make_numbers(const FigureDefinition& definition, std::span<const TracePart> parts) {
    if (parts.size() == 1) return definition.numbers(*parts.front().reader, parts.front().options);
    if (definition.joint_numbers) return definition.joint_numbers(parts);
    std::optional<Table> joined;
    std::string nothing;
    for (const TracePart& part : parts) {
        try {
            Table table = definition.numbers(*part.reader, part.options);
            for (Row& row : table.rows) {
                row.cells.insert(row.cells.begin(), part.name);
                row.group = fmt::format("{}: {}", part.name, row.group);
            }
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
