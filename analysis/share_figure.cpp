#include "analysis/share_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/covered_curves.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "analysis/tables/table_format.h"

namespace kvscope::analysis {
namespace {

Axis percent_axis(const ShareMeasure& measure, double largest, bool difference) {
    if (difference) return difference_axis(measure.title, measure.percent(), std::max(largest, 1e-3));
    Axis axis;
    axis.title = measure.title;
    axis.unit = measure.percent();
    axis.min = 0;
    axis.max = largest >= 95 ? 105 : std::max(largest * 1.08, 1e-3);
    if (largest >= 95) {
        for (const int tick : {0, 25, 50, 75, 100})
            axis.ticks.push_back({static_cast<double>(tick), std::to_string(tick)});
    }
    return axis;
}

Panel layers_panel(std::span<const RunShares> runs, const ShareMeasure& measure, bool difference) {
    Panel panel;
    panel.title = "Each layer";
    double largest = 0;
    size_t most_layers = 0;
    for (const RunShares& run : runs) {
        const std::vector<int> layers = chosen_layers(*run.shown.part->reader, run.shown.part->options);
        if (layers.size() > most_layers) panel.x = layer_axis(layers);
        most_layers = std::max(most_layers, layers.size());
        Line line;
        line.label = run.shown.label;
        line.subject = run.shown.subject();
        line.series = run.shown.series();
        line.style = run.shown.style;
        if (layers.size() > 1) line.style.marker = Marker::none;
        for (size_t i = 0; i < layers.size(); ++i) {
            line.x.push_back(static_cast<double>(i));
            line.y.push_back(100 * run.layers[static_cast<size_t>(layers[i])]);
            largest = std::max(largest, std::abs(line.y.back()));
        }
        panel.shapes.emplace_back(std::move(line));
    }
    panel.y = percent_axis(measure, largest, difference);
    if (difference) panel.shapes.emplace_back(zero_line());
    return panel;
}

/// Axis of budgets: entries per KV head (logarithmic), or per cent of the full cache if a budget is a share of bytes.
class BudgetAxis {
 public:
    explicit BudgetAxis(std::span<const RunShares> runs) {
        for (const RunShares& run : runs) {
            is_share_ = is_share_ || has_budget_of_bytes(run.shown.attributes());
            entries_.push_back(std::max<int64_t>(run.shown.attributes().budget, 1));
        }
        std::sort(entries_.begin(), entries_.end());
        entries_.erase(std::unique(entries_.begin(), entries_.end()), entries_.end());
    }

    double place(const trace::RunAttributes& run) const {
        // A budget of entries may exceed the prompt.
        if (is_share_) return 100 * std::min(run.budget_fraction, 1.0);
        return static_cast<double>(std::max<int64_t>(run.budget, 1));
    }

    Axis axis() const {
        Axis axis;
        axis.title = "Budget";
        if (is_share_) {
            axis.unit = "% of the full cache";
            axis.max = 105;
            for (const int tick : {0, 25, 50, 75, 100})
                axis.ticks.push_back({static_cast<double>(tick), std::to_string(tick)});
            return axis;
        }
        axis.unit = "entries per head";
        axis.scale = Scale::logarithmic;
        const auto least = static_cast<double>(entries_.front());
        const auto most = static_cast<double>(entries_.back());
        const double margin = least < most ? std::pow(most / least, 0.08) : 2;
        axis.min = least / margin;
        axis.max = most * margin;
        axis.ticks = ticks(std::log(axis.max / axis.min));
        return axis;
    }

 private:
    /// Returns ticks for the smallest and the largest budget, and for others whose labels fit.
    std::vector<Tick> ticks(double span) const {
        constexpr double room = 0.2;  // share of the axis, which is about 40 mm long
        const auto distance = [span](int64_t from, int64_t to) {
            return std::log(static_cast<double>(to) / static_cast<double>(from)) / span;
        };
        std::vector<Tick> ticks;
        int64_t last_shown = 0;
        for (const int64_t budget : entries_) {
            const bool is_end = budget == entries_.front() || budget == entries_.back();
            if (!is_end && (distance(last_shown, budget) < room || distance(budget, entries_.back()) < room)) continue;
            ticks.push_back({static_cast<double>(budget), format_count(budget)});
            last_shown = budget;
        }
        return ticks;
    }

    bool is_share_ = false;
    std::vector<int64_t> entries_;
};

void sort_by_x(Line& line) {
    std::vector<std::pair<double, double>> points;
    for (size_t i = 0; i < line.x.size(); ++i) points.emplace_back(line.x[i], line.y[i]);
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < points.size(); ++i) std::tie(line.x[i], line.y[i]) = points[i];
}

Panel model_panel(std::span<const RunShares> runs, const ShareMeasure& measure, bool difference) {
    Panel panel;
    panel.title = "Whole model";
    const BudgetAxis budgets(runs);
    panel.x = budgets.axis();
    double largest = 0;
    std::map<std::string, Line> lines;
    std::vector<std::string> order;
    std::vector<Shape> points;
    for (const RunShares& run : runs) {
        const trace::RunAttributes& attributes = run.shown.attributes();
        const std::string method = run.shown.method();
        if (lines.find(method) == lines.end()) order.push_back(method);
        Line& line = lines[method];
        line.label = attributes.policy;
        line.series = run.shown.series();
        line.style.color = run.shown.style.color;
        line.style.width_pt = 0.5;
        const double place = budgets.place(attributes);
        line.x.push_back(place);
        line.y.push_back(100 * run.model);
        largest = std::max(largest, std::abs(line.y.back()));
        Scatter point;
        point.label = run.shown.label;
        point.subject = run.shown.subject();
        point.series = run.shown.series();
        point.x = {place};
        point.y = {100 * run.model};
        point.marker = run.shown.style.marker;
        point.size_pt = 3.2;
        point.color = run.shown.style.color;
        points.emplace_back(std::move(point));
    }
    for (const std::string& method : order) {
        Line& line = lines[method];
        if (line.x.size() < 2) continue;
        sort_by_x(line);
        panel.shapes.emplace_back(std::move(line));
    }
    std::move(points.begin(), points.end(), std::back_inserter(panel.shapes));
    panel.y = percent_axis(measure, largest, difference);
    if (difference) panel.shapes.emplace_back(zero_line());
    return panel;
}

Figure draw_shares(const FigureOptions& options, std::span<const RunShares> runs, const ShareMeasure& measure,
                   bool difference) {
    Figure figure;
    figure.width_mm = 174;
    figure.panel_height_mm = 48;
    figure.panels.push_back(layers_panel(runs, measure, difference));
    figure.panels.push_back(model_panel(runs, measure, difference));
    if (is_narrow_figure(options)) {
        figure.rows = 2;
        figure.panels[1].row = 1;
    } else {
        figure.columns = 2;
        figure.column_widths = {3, 1};
        figure.panels[1].column = 1;
    }
    return figure;
}

void check_layers(const SharePair& pair) {
    if (pair.a.layers.size() == pair.b.layers.size()) return;
    throw NothingToShow(
        fmt::format("A − B needs models with equal numbers of layers: {} has {} layers in A and {} in B",
                    pair.shown.label, pair.a.layers.size(), pair.b.layers.size()));
}

}  // namespace

Figure share_figure(std::span<const TracePart> parts, std::span<const RunShares> runs, const ShareMeasure& measure) {
    std::vector<ShownRun> shown;
    for (const RunShares& run : runs) shown.push_back(run.shown);
    Figure figure = draw_shares(parts.front().options, runs, measure, false);
    figure.legend = legend_of_runs(shown);
    complete_figure(figure, parts, shown);
    if (parts.size() == 1) mark_hidden_series(figure);  // must follow complete_figure(), which shortens labels
    return figure;
}

Figure share_difference_figure(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                               const ShareMeasure& measure) {
    std::vector<RunShares> differences;
    std::vector<ShownPair> shown;
    for (const SharePair& pair : pairs) {
        check_layers(pair);
        RunShares& difference = differences.emplace_back(pair.a);
        difference.shown = pair.shown.a;
        difference.shown.label = pair.shown.label;
        for (size_t layer = 0; layer < difference.layers.size(); ++layer)
            difference.layers[layer] -= pair.b.layers[layer];
        difference.model -= pair.b.model;
        shown.push_back(pair.shown);
    }
    Figure figure = draw_shares(sides[0].options, differences, measure, true);
    figure.panels[0].title += ": " + difference_title(sides, shown);
    figure.legend = legend_of_pairs(sides, shown);
    complete_figure(figure, sides, shown);
    return figure;
}

Table share_difference_numbers(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                               const ShareMeasure& measure) {
    SubjectTable table({SubjectKey::run_a, SubjectKey::run_b, label_column(), SubjectKey::layer,
                        Column{"unit", "Unit", "", ColumnType::text}, Column{"a", "A", "", ColumnType::real, 4},
                        Column{"b", "B", "", ColumnType::real, 4},
                        Column{"difference", "A − B", "", ColumnType::real, 4}});
    const std::string unit = with_unit(measure.title, measure.share());
    const std::vector<int> layers = chosen_layers(*sides[0].reader, sides[0].options);
    for (const SharePair& pair : pairs) {
        check_layers(pair);
        const auto add = [&](int layer, double a, double b) {
            SubjectPair of = pair.shown.subjects();
            of.a.layer = of.b.layer = layer;
            table.add(of, {pair.shown.label, unit, a, b, a - b});
        };
        add(-1, pair.a.model, pair.b.model);
        for (const int layer : layers) {
            const auto l = static_cast<size_t>(layer);
            add(layer, pair.a.layers[l], pair.b.layers[l]);
        }
    }
    return table.take();
}

}  // namespace kvscope::analysis
