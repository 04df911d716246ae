#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/results/results_figure.h"
#include "analysis/results/summary_drawing.h"
#include "analysis/results/summary_options.h"
#include "analysis/results/summary_table.h"
#include "analysis/runs/shown_runs.h"

namespace kvscope::analysis {
namespace {

constexpr double group_width = 0.8;  // of all bars of a column, in units of the x axis
constexpr size_t most_columns = 2;   // of panels

/// Returns a vertical line from one end of the interval to the other.
Line whisker(double x, const Interval& interval) {
    Line line;
    line.x = {x, x};
    line.y = {interval.low, interval.high};
    line.style.color = MarkColor({90, 90, 90}, Rgb{170, 170, 170});
    line.style.width_pt = 0.75;
    return line;
}

Figure make(std::span<const TracePart> parts) {
    const ChosenResults chosen = chosen_and_judged_results(parts);
    const std::vector<Result>& results = chosen.results;
    const Summary summary = summarize(results, summary_request(parts.front().options, chosen));
    const std::vector<LineStyle> styles = styles_of_rows(summary, results);
    const size_t n_rows = summary.rows.size();
    Figure figure;
    figure.name = "results-bars";
    figure.title = title_of_summary(summary);
    std::vector<std::string> columns;
    for (const SettingValue& value : summary.columns) columns.push_back(value.label);
    double low = 0, high = 0;
    for (size_t block = 0; block < summary.blocks.size(); ++block) {
        Panel panel = panel_of_block(summary, block, most_columns);
        panel.x = name_axis(summary.column_setting ? summary.column_setting->title : "", columns, false);
        if (summary.column_setting) panel.x.unit = summary.column_setting->unit;
        panel.y.title = summary.scalar->title;
        panel.y.unit = summary.unit();
        std::vector<Line> whiskers;
        for (size_t row = 0; row < n_rows; ++row) {
            Bars bars;
            bars.label = summary.row_label(row);
            bars.color = styles[row].color;
            bars.width = group_width / static_cast<double>(n_rows);
            const double offset = (static_cast<double>(row) + 0.5) * bars.width - group_width / 2;
            for (size_t column = 0; column < columns.size(); ++column) {
                const auto estimate = drawn_estimate(summary, summary.cell(block, row, column));
                if (!estimate) continue;
                bars.x.push_back(static_cast<double>(column) + offset);
                bars.y.push_back(estimate->value);
                const bool has_interval = std::isfinite(estimate->interval.low);
                if (has_interval) whiskers.push_back(whisker(bars.x.back(), estimate->interval));
                low = std::min({low, estimate->value, has_interval ? estimate->interval.low : 0.0});
                high = std::max({high, estimate->value, has_interval ? estimate->interval.high : 0.0});
            }
            if (!bars.x.empty()) panel.shapes.emplace_back(std::move(bars));
        }
        for (Line& line : whiskers) panel.shapes.emplace_back(std::move(line));
        figure.panels.push_back(std::move(panel));
    }
    for (size_t row = 0; row < n_rows; ++row)
        figure.legend.push_back({summary.row_label(row), LegendEntry::Symbol::patch, styles[row]});
    if (low == high) high = 1;
    for (Panel& panel : figure.panels) {
        panel.y.min = low < 0 ? low - 0.05 * (high - low) : 0;
        panel.y.max = high > 0 ? high + 0.05 * (high - low) : 0;
    }
    arrange_blocks(figure, summary, most_columns);
    figure.shared_x = figure.shared_y = true;
    figure.panel_height_mm = 50;
    figure.width_mm = figure.columns > 1 || columns.size() * n_rows > 24 ? 174 : 120;
    figure.caption = fmt::format("{}. {} Lines show the intervals.", figure.title, summary.note());
    complete_figure(figure, parts, {});
    return figure;
}

Table numbers(std::span<const TracePart> parts) {
    Table table = summary_numbers(chosen_summary(parts));
    table.name = "results-bars";
    return table;
}

}  // namespace

FigureDefinition results_bars_figure() {
    return of_results<make, numbers>(
        {"results-bars", "Bars of results",
         "Means over prompts or task samples as groups of bars with 95 % intervals, by budget and policy or by other "
         "settings",
         summary_options(), check_summary});
}

}  // namespace kvscope::analysis
