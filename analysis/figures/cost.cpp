#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/runs/cost_table.h"
#include "analysis/runs/run_pairs.h"
#include "analysis/runs/run_style.h"
#include "analysis/runs/shown_runs.h"

namespace kvscope::analysis {
namespace {

constexpr double most_linear_decades = 2;    ///< Axes over more decades are logarithmic.
constexpr double one_value_distance = 1e-4;  ///< Points with a smaller relative distance count as one value.
constexpr double most_empty_share = 0.5;     ///< share of an axis from zero that may be empty before the first point

struct Point {
    ShownRun run;
    double x = 0;
    double y = 0;
};

struct Points {
    Column x;
    Column y;
    std::vector<Point> points;
    std::vector<ShownRun> left_out;  ///< runs that lack one of the two numbers
};

size_t column_index(const Table& table, const std::string& name) {
    std::vector<std::string> numbers;
    for (size_t i = 0; i < table.columns.size(); ++i) {
        const Column& column = table.columns[i];
        if (column.type == ColumnType::text || column.name == "run") continue;
        if (column.name == name) return i;
        numbers.push_back(column.name);
    }
    throw FigureError(
        fmt::format("the table of runs has no numeric column '{}'; it has {}", name, fmt::join(numbers, ", ")));
}

std::optional<double> number(const Cell& cell) {
    if (const auto* real = std::get_if<double>(&cell); real && std::isfinite(*real)) return *real;
    if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
    return std::nullopt;
}

/// Returns "bytes_share" if more than half of the runs have the same coverage, otherwise "coverage".
std::string default_x(std::span<const ShownRun> runs) {
    std::map<const TracePart*, Table> tables;
    std::map<double, size_t> coverages;  // number of runs by coverage
    size_t most = 0;
    for (const ShownRun& run : runs) {
        auto& table = tables[run.part];
        if (table.columns.empty()) table = cost_table(*run.part->reader, run.part->options.prompt);
        const auto& cells = table.rows[static_cast<size_t>(run.index)].cells;
        if (const auto coverage = number(cells[column_index(table, "coverage")]))
            most = std::max(most, ++coverages[*coverage]);
    }
    return runs.size() > 1 && 2 * most > runs.size() ? "bytes_share" : "coverage";
}

std::vector<std::string> chosen_columns(const FigureOptions& options, std::span<const ShownRun> runs) {
    if (options.columns.empty()) return {default_x(runs), "kl_mean"};
    if (options.columns.size() != 2) {
        throw FigureError(
            fmt::format("exactly two columns are needed, x and y; {} were named", options.columns.size()));
    }
    return options.columns;
}

Points read_points(std::span<const TracePart> parts) {
    const std::vector<ShownRun> runs = shown_runs(parts);
    const std::vector<std::string> names = chosen_columns(parts.front().options, runs);
    Points points;
    Table table;
    size_t x = 0, y = 0;
    const TracePart* of = nullptr;
    for (const ShownRun& run : runs) {
        if (run.part != of) {
            table = cost_table(*run.part->reader, run.part->options.prompt);
            x = column_index(table, names[0]);
            y = column_index(table, names[1]);
            points.x = table.columns[x];
            points.y = table.columns[y];
            of = run.part;
        }
        const auto& cells = table.rows[static_cast<size_t>(run.index)].cells;
        const auto at_x = number(cells[x]);
        const auto at_y = number(cells[y]);
        if (at_x && at_y) {
            points.points.push_back({run, *at_x, *at_y});
        } else {
            points.left_out.push_back(run);
        }
    }
    if (points.points.empty()) {
        throw NothingToShow(fmt::format("{}: no chosen run has both {} and {}", parts.front().reader->path().string(),
                                        names[0], names[1]));
    }
    return points;
}

std::string left_out(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    const Points points = read_points({&part, 1});
    const std::string labels = join_run_labels(points.left_out);
    return labels.empty() ? "" : fmt::format("{}: {} or {} is missing", labels, points.x.name, points.y.name);
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    read_points({&part, 1});
}

Axis axis_of(const Column& column, const std::vector<double>& values) {
    Axis axis;
    axis.title = column.title.empty() ? column.name : column.title;
    axis.unit = column.unit;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (*least > 0 && *most / *least > std::pow(10, most_linear_decades)) {
        axis.scale = Scale::logarithmic;
        axis.min = *least / 1.6;
        axis.max = *most * 1.6;
        return axis;
    }
    const bool is_one_value = *most - *least <= one_value_distance * std::max(std::abs(*least), std::abs(*most));
    const bool is_far_from_zero =
        std::min(std::abs(*least), std::abs(*most)) > most_empty_share * std::max(-*least, *most) &&
        (*least > 0 || *most < 0);
    const double span = is_far_from_zero ? *most - *least : std::max(*most, 0.0) - std::min(*least, 0.0);
    axis.min = is_far_from_zero || *least < 0 ? *least - 0.06 * span : 0;
    axis.max = is_far_from_zero || *most > 0 ? *most + 0.06 * span : 0;
    if (!is_one_value) return axis;
    const double around = *most == 0 ? 1 : std::abs(*most) / 10;
    axis.min = *most == 0 ? 0 : *least - around;
    axis.max = *most + around;
    return axis;
}

std::string name_of(const Column& column) { return column.title.empty() ? column.name : column.title; }

std::string measured_in(const Column& column) { return with_unit(name_of(column), column.unit); }

Scatter scatter_of(const Point& point) {
    const LineStyle& style = point.run.style;
    Scatter scatter;
    scatter.label = point.run.label;
    scatter.subject = point.run.subject();
    scatter.x = {point.x};
    scatter.y = {point.y};
    scatter.marker = style.marker == Marker::none ? Marker::circle : style.marker;
    scatter.size_pt = 3.4;
    scatter.color = style.color;
    return scatter;
}

Figure empty_figure(const Column& x, const Column& y) {
    Figure figure;
    figure.name = "cost";
    figure.title = fmt::format("{} over {}", name_of(y), name_of(x));
    figure.width_mm = 84;
    figure.panel_height_mm = 56;
    return figure;
}

void show_markers(Figure& figure) {
    for (LegendEntry& entry : figure.legend) {
        if (entry.style.marker != Marker::none) entry.symbol = LegendEntry::Symbol::marker;
    }
}

Line line_through(std::vector<const Point*> points) {
    std::stable_sort(points.begin(), points.end(), [](const Point* a, const Point* b) {
        return a->run.attributes().budget < b->run.attributes().budget;
    });
    Line line;
    line.style.color = points.front()->run.style.color;
    line.style.width_pt = 0.5;
    for (const Point* point : points) {
        line.x.push_back(point->x);
        line.y.push_back(point->y);
    }
    return line;
}

Figure make(std::span<const TracePart> parts) {
    const Points points = read_points(parts);
    std::vector<double> xs, ys;
    std::vector<ShownRun> shown;
    std::map<std::string, std::vector<const Point*>> budgets;  // points of each method
    std::vector<Shape> scatters;
    for (const Point& point : points.points) {
        xs.push_back(point.x);
        ys.push_back(point.y);
        shown.push_back(point.run);
        budgets[point.run.method()].push_back(&point);
        scatters.emplace_back(scatter_of(point));
    }
    Figure figure = empty_figure(points.x, points.y);
    Panel panel;
    panel.x = axis_of(points.x, xs);
    panel.y = axis_of(points.y, ys);
    for (auto& [method, of_policy] : budgets)
        if (of_policy.size() > 1) panel.shapes.emplace_back(line_through(std::move(of_policy)));
    std::move(scatters.begin(), scatters.end(), std::back_inserter(panel.shapes));
    figure.panels.push_back(std::move(panel));
    figure.legend = legend_of_runs(shown);
    show_markers(figure);
    figure.caption = fmt::format("{} over {}, one point per run. Lines join the budgets of one policy.",
                                 name_of(points.y), name_of(points.x));
    if (!points.left_out.empty())
        figure.caption += fmt::format(" Omitted because a number is missing: {}.", join_run_labels(points.left_out));
    complete_figure(figure, parts, shown);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    const Points points = read_points({&part, 1});
    Column x = points.x, y = points.y;
    x.type = y.type = ColumnType::real;
    x.best = y.best = Best::none;
    SubjectTable table("cost", fmt::format("{} over {}", name_of(points.y), name_of(points.x)),
                       {SubjectKey::run, label_column(), x, y});
    for (const Point& point : points.points) table.add(point.run.subject(), {point.run.label, point.x, point.y});
    return table.take();
}

struct PointPairs {
    Column x, y;
    std::vector<Point> points;
    std::vector<ShownPair> shown;
    std::vector<std::pair<Point, Point>> pairs;  ///< points of A and B
};

PointPairs read_point_pairs(std::span<const TracePart, 2> sides) {
    const std::vector<std::string> names = chosen_columns(sides[0].options, shown_runs(sides));
    const Table of_a = cost_table(*sides[0].reader, sides[0].options.prompt);
    const Table of_b = cost_table(*sides[1].reader, sides[1].options.prompt);
    const size_t x = column_index(of_a, names[0]);
    const size_t y = column_index(of_a, names[1]);
    PointPairs all{of_a.columns[x], of_a.columns[y], {}, {}, {}};
    const bool two_traces = sides[0].reader != sides[1].reader;
    const auto point_of = [&](const ShownRun& run) -> std::optional<Point> {
        const Table& table = run.part == sides.data() ? of_a : of_b;
        const auto& cells = table.rows[static_cast<size_t>(run.index)].cells;
        const auto at_x = number(cells[x]);
        const auto at_y = number(cells[y]);
        if (!at_x || !at_y) return std::nullopt;
        Point point{run, *at_x, *at_y};
        const std::string label = run_label(run.attributes());
        point.run.label = two_traces ? fmt::format("{}: {}", run.part->name, label) : label;
        return point;
    };
    for (const ShownPair& pair : shown_pairs(sides)) {
        auto a = point_of(pair.a);
        auto b = point_of(pair.b);
        if (!a || !b) continue;
        all.shown.push_back(pair);
        all.pairs.emplace_back(std::move(*a), std::move(*b));
    }
    if (all.shown.empty()) {
        throw NothingToShow(fmt::format("no pair of compared runs has both {} and {}", names[0], names[1]));
    }
    for (const ShownRun& run : shown_runs(sides)) {
        if (auto point = point_of(run)) all.points.push_back(std::move(*point));
    }
    return all;
}

Figure make_difference(std::span<const TracePart, 2> sides) {
    const PointPairs all = read_point_pairs(sides);
    Figure figure = empty_figure(all.x, all.y);
    figure.title = fmt::format("{} over {}, from B to A", measured_in(all.y), measured_in(all.x));
    Panel panel;
    panel.title = difference_title(sides, all.shown);
    for (size_t i = 0; i < all.pairs.size(); ++i) {
        const auto& [a, b] = all.pairs[i];
        Line arrow;
        arrow.label = all.shown[i].label;
        arrow.subject = a.run.subject();
        arrow.style.color = b.run.style.color;
        arrow.style.width_pt = 0.7;
        arrow.arrow = true;
        arrow.x = {b.x, a.x};
        arrow.y = {b.y, a.y};
        panel.shapes.emplace_back(std::move(arrow));
    }
    std::vector<double> xs, ys;
    std::vector<ShownRun> shown;
    for (const Point& point : all.points) {
        xs.push_back(point.x);
        ys.push_back(point.y);
        panel.shapes.emplace_back(scatter_of(point));
        shown.push_back(point.run);
    }
    panel.x = axis_of(all.x, xs);
    panel.y = axis_of(all.y, ys);
    figure.panels.push_back(std::move(panel));
    figure.legend = legend_of_runs(shown);
    show_markers(figure);
    figure.caption = fmt::format("{} over {}. Arrows lead from each run of B ({}) to the paired run of A ({}).",
                                 name_of(all.y), name_of(all.x), sides[1].name, sides[0].name);
    complete_figure(figure, sides, all.shown);
    return figure;
}

Table difference_numbers(std::span<const TracePart, 2> sides) {
    const PointPairs all = read_point_pairs(sides);
    std::vector<std::variant<SubjectKey, Column>> columns = {SubjectKey::run_a, SubjectKey::run_b, label_column()};
    for (const Column& of : {all.x, all.y}) {
        columns.emplace_back(Column{of.name + "_unit", name_of(of) + " unit", "", ColumnType::text});
        for (const auto& [name, title] : {std::pair{"_a", " A"}, {"_b", " B"}, {"_difference", " A − B"}}) {
            Column column = of;
            column.name += name;
            column.title = name_of(of) + title;
            column.type = ColumnType::real;
            column.best = Best::none;
            columns.emplace_back(std::move(column));
        }
    }
    SubjectTable table(
        "cost-difference",
        fmt::format("{} and {}: each run of A minus the paired run of B", measured_in(all.x), measured_in(all.y)),
        std::move(columns));
    for (size_t i = 0; i < all.pairs.size(); ++i) {
        const auto& [a, b] = all.pairs[i];
        table.add(all.shown[i].subjects(), {all.shown[i].label, measured_in(all.x), a.x, b.x, a.x - b.x,
                                            measured_in(all.y), a.y, b.y, a.y - b.y});
    }
    return table.take();
}

}  // namespace

FigureDefinition cost_figure() {
    FigureDefinition definition{
        "cost",
        "Cost",
        "Plot of two numbers per run, such as coverage and divergence from the full run",
        {{"columns",
          "x and y, two columns of the table of runs; default: coverage and kl_mean (x is bytes_share if most runs "
          "have "
          "the same coverage)"},
         {"runs", "runs, by label, policy or number; default: all except full"}},
        check,
        make_from_one_trace<make>,
        numbers,
        {},
        make,
        make_difference,
        difference_numbers};
    definition.left_out = left_out;
    return definition;
}

}  // namespace kvscope::analysis
