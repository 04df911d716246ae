#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/drawing/covered_curves.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/results/results_figure.h"
#include "analysis/results/summary_drawing.h"
#include "analysis/results/summary_options.h"
#include "analysis/results/summary_table.h"
#include "analysis/runs/shown_runs.h"

namespace kvscope::analysis {
namespace {

constexpr size_t most_bands = 4;  // more bands would hide each other
constexpr size_t most_columns = 3;

/// The x axis: a setting with numbers, or a scalar.
struct XAxis {
    std::optional<Setting> setting;
    const Scalar* scalar = nullptr;

    bool is_budget() const { return !setting || setting->name == "budget"; }
    std::string title() const { return setting ? setting->title : std::string(scalar->title); }
    std::string unit() const { return setting ? setting->unit : std::string(scalar->unit); }
};

/// Budgets are entries if all runs have such budgets, otherwise shares.
XAxis x_axis_of(const FigureOptions& options, std::span<const Result> results) {
    const std::string name = options.own_text("over", "budget");
    if (const Scalar* scalar = find_scalar(name)) return {std::nullopt, scalar};
    Setting setting = setting_named(name, results, options.setting_labels);
    const auto counts_entries = [&](const Result& result) {
        return result.is_full() || setting.value(result).place.first == 0;
    };
    if (setting.name == "budget" && !std::ranges::all_of(results, counts_entries))
        return {std::nullopt, &scalar_named("budget_share")};
    return {std::move(setting), nullptr};
}

const Scalar& y_scalar_of(const FigureOptions& options, std::span<const Result> results) {
    const std::string name = options.own_text("y", "");
    const Scalar& scalar = name.empty() ? default_scalar(results) : scalar_named(name);
    require_known(scalar, results);
    return scalar;
}

bool has_several(std::span<const Result> results, std::string Result::*member) {
    std::string first;
    for (const Result& result : results) {
        if (member == &Result::budget && result.is_full()) continue;
        if (first.empty()) first = result.*member;
        if (result.*member != first) return true;
    }
    return false;
}

struct Point {
    double x = 0;
    const SummaryCell* y = nullptr;
    size_t column = 0;
};

struct Curves {
    XAxis x;
    Summary y;
    std::optional<Summary> x_means;  ///< means of the scalar of the x axis

    /// Returns the points of a row in ascending order of x, without unknown numbers.
    std::vector<Point> points(size_t block, size_t row) const {
        std::vector<Point> found;
        for (size_t column = 0; column < y.columns.size(); ++column) {
            const SummaryCell& cell = y.cell(block, row, column);
            if (!cell.estimate) continue;
            double at = y.columns[column].number;
            if (x_means) {
                const auto& estimate = x_means->cell(block, row, column).estimate;
                at = estimate ? estimate->value : NAN;
            }
            if (std::isfinite(at)) found.push_back({at, &cell, column});
        }
        std::ranges::stable_sort(found, {}, &Point::x);
        return found;
    }
    /// Whether a row is the full run, which has one number for the whole axis.
    bool is_rule(size_t row) const { return (x.is_budget() || x.setting->full_has_all) && is_full(row); }
    bool is_full(size_t row) const {
        for (size_t block = 0; block < y.blocks.size(); ++block)
            for (size_t column = 0; column < y.columns.size(); ++column) {
                const SummaryCell& cell = y.cell(block, row, column);
                if (cell.has_rows && !cell.is_full) return false;
            }
        return true;
    }
};

struct Chosen {
    std::vector<Result> results;
    XAxis x;
    SummaryRequest request;
};

Chosen choose(std::span<const TracePart> parts) {
    const FigureOptions& options = parts.front().options;
    ChosenResults of_traces = chosen_and_judged_results(parts);
    Chosen chosen{std::move(of_traces.results), {}, {}};
    chosen.request.validity = std::move(of_traces.validity);
    std::vector<Result>& results = chosen.results;
    const Scalar& scalar = y_scalar_of(options, results);
    chosen.request.scalar = scalar.name;
    chosen.request.in_percent = is_in_percent(options, scalar);
    chosen.x = x_axis_of(options, results);
    chosen.request.labels = options.setting_labels;
    chosen.request.columns = chosen.x.setting ? chosen.x.setting->name : "budget";
    // A curve over a parameter joins settings that differ in this parameter.
    if (chosen.x.setting && chosen.x.setting->of_policy)
        for (Result& result : results) result.setting = setting_without(result, chosen.x.setting->name);
    if (!chosen.x.is_budget() && has_several(results, &Result::budget)) chosen.request.rows = {"policy", "budget"};
    const std::string blocks = options.own_text("blocks", has_several(results, &Result::task) ? "task" : "none");
    chosen.request.blocks = blocks == "none" ? "" : blocks;
    if (asks_in_both_ways(results) && blocks != "question" && chosen.request.columns != "question")
        chosen.request.rows.emplace_back("question");
    const auto has_point = [&](const Result& result) {
        if (result.is_full() && chosen.x.is_budget()) return false;
        const double x = chosen.x.setting ? chosen.x.setting->value(result).number : chosen.x.scalar->value(result);
        return result.is_complete() && std::isfinite(x) &&
               std::isfinite(scalar_named(chosen.request.scalar).value(result));
    };
    if (std::ranges::none_of(results, has_point))
        throw NothingToShow(fmt::format("no compressed run has both {} and a number of {}", chosen.request.scalar,
                                        chosen.x.setting ? chosen.x.setting->name : chosen.x.scalar->name));
    return chosen;
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    choose({&part, 1});
}

Curves curves_of(const Chosen& chosen) {
    Curves curves{chosen.x, summarize(chosen.results, chosen.request), {}};
    if (chosen.x.scalar) {
        SummaryRequest request = chosen.request;
        request.scalar = chosen.x.scalar->name;
        curves.x_means = summarize(chosen.results, request);
    }
    return curves;
}

/// Returns colors by policy. Curves of one policy have different markers.
std::vector<LineStyle> styles_of_curves(const Chosen& chosen, const Summary& summary) {
    constexpr std::array markers = {Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::cross};
    std::vector<LineStyle> styles = styles_of_rows(summary, chosen.results);
    std::map<std::string, size_t> n_rows;  // by policy
    for (size_t row = 0; row < styles.size(); ++row) {
        const std::string& setting = summary.rows[row].front().label;
        styles[row].marker = markers[n_rows[setting.substr(0, setting.find(':'))]++ % markers.size()];
    }
    return styles;
}

/// Smallest and largest numbers of an axis.
struct Limits {
    double low = INFINITY, high = -INFINITY;

    void add(double number) {
        if (!std::isfinite(number)) return;
        low = std::min(low, number);
        high = std::max(high, number);
    }
    void set(Axis& axis) const {
        const bool is_logarithmic = axis.scale == Scale::logarithmic;
        if (is_logarithmic) {
            const double margin = low < high ? 1.06 : 2;
            axis.min = low / margin;
            axis.max = high * margin;
            return;
        }
        const double margin = low < high ? 0.06 * (high - low) : std::max(0.5 * std::abs(low), 0.5);
        axis.min = low - margin;
        axis.max = high + margin;
    }
};

Figure make(std::span<const TracePart> parts) {
    const Chosen chosen = choose(parts);
    const Curves curves = curves_of(chosen);
    const Summary& summary = curves.y;
    const std::vector<LineStyle> styles = styles_of_curves(chosen, summary);
    Figure figure;
    figure.name = "results-curves";
    figure.title = fmt::format("{} over {}", summary.scalar->title, curves.x.title());
    Limits x_limits, y_limits;
    std::map<double, std::string> ticks;
    std::vector<bool> has_legend(summary.rows.size(), false);
    const bool has_bands = summary.rows.size() <= most_bands + 1;
    for (size_t block = 0; block < summary.blocks.size(); ++block) {
        Panel panel = panel_of_block(summary, block, most_columns);
        panel.x.title = curves.x.title();
        panel.x.unit = curves.x.unit();
        panel.y.title = summary.scalar->title;
        panel.y.unit = summary.unit();
        if (curves.x.setting && curves.x.is_budget()) {
            panel.x.unit = "entries";
            panel.x.scale = Scale::logarithmic;
        }
        for (size_t row = 0; row < summary.rows.size(); ++row) {
            if (curves.is_rule(row)) {
                const auto estimate = drawn_estimate(summary, summary.cell(block, row, 0));
                if (!estimate) continue;
                Rule rule;
                rule.value = estimate->value;
                rule.label = summary.row_label(row);
                rule.style = styles[row];
                rule.style.marker = Marker::none;
                rule.style.dash = Dash::dashed;
                y_limits.add(rule.value);
                panel.shapes.emplace_back(rule);
                continue;
            }
            Line line;
            line.label = summary.row_label(row);
            line.style = styles[row];
            line.series = static_cast<int>(row);
            for (const Point& point : curves.points(block, row)) {
                const Estimate estimate = *drawn_estimate(summary, *point.y);
                line.x.push_back(point.x);
                line.y.push_back(estimate.value);
                x_limits.add(point.x);
                y_limits.add(estimate.value);
                if (curves.x.setting) ticks[point.x] = summary.columns[point.column].label;
                if (!has_bands) continue;
                const bool has_interval = std::isfinite(estimate.interval.low);
                line.low.push_back(has_interval ? estimate.interval.low : estimate.value);
                line.high.push_back(has_interval ? estimate.interval.high : estimate.value);
                y_limits.add(line.low.back());
                y_limits.add(line.high.back());
            }
            if (line.x.empty()) continue;
            if (!has_legend[row])
                figure.legend.push_back({line.label, LegendEntry::Symbol::line, line.style, "", "", line.series});
            has_legend[row] = true;
            panel.shapes.emplace_back(std::move(line));
        }
        figure.panels.push_back(std::move(panel));
    }
    constexpr size_t most_ticks = 8;
    for (Panel& panel : figure.panels) {
        x_limits.set(panel.x);
        y_limits.set(panel.y);
        place_labels_side_by_side(panel);
        if (ticks.size() <= most_ticks)
            for (const auto& [place, label] : ticks) panel.x.ticks.push_back({place, label});
    }
    arrange_blocks(figure, summary, most_columns);
    figure.shared_x = figure.shared_y = true;
    mark_hidden_series(figure);
    figure.panel_height_mm = 60;
    figure.width_mm = figure.columns > 1 ? 174 : 120;
    figure.caption = fmt::format("{}. {}{}", figure.title, summary.note(),
                                 has_bands ? " Bands show the intervals." : " The table contains the intervals.");
    complete_figure(figure, parts, {});
    return figure;
}

Table numbers(std::span<const TracePart> parts) {
    const Curves curves = curves_of(choose(parts));
    Table all = summary_numbers(curves.y);
    Table table{"results-curves", all.title, all.columns, {}, all.note};
    const auto place =
        static_cast<std::ptrdiff_t>(std::ranges::find(table.columns, "n", &Column::name) - table.columns.begin());
    table.columns.insert(table.columns.begin() + place, {"x", curves.x.title(), curves.x.unit(), ColumnType::real, 4});
    size_t line = 0;  // row of `all`, in the order of summary_numbers()
    for (size_t block = 0; block < curves.y.blocks.size(); ++block)
        for (size_t row = 0; row < curves.y.rows.size(); ++row) {
            const std::vector<Point> points = curves.points(block, row);
            for (size_t column = 0; column < curves.y.columns.size(); ++column) {
                if (!curves.y.cell(block, row, column).has_rows) continue;
                Row copy = all.rows[line++];
                const auto point = std::ranges::find(points, column, &Point::column);
                copy.cells.insert(copy.cells.begin() + place, point == points.end() ? Cell() : Cell(point->x));
                table.rows.push_back(std::move(copy));
            }
        }
    return table;
}

}  // namespace

FigureDefinition results_curves_figure() {
    return of_results<make, numbers>(
        {"results-curves",
         "Curves of results",
         "Means over prompts or task samples, over the budget, the length, a parameter or another number",
         {{"runs", names_of_results_help},
          {"y", "the averaged number; default: score if known, otherwise kl", scalar_names(), {}, "score"},
          {"over",
           "x axis: budget, length, depth, a parameter, or a number such as coverage; default: budget",
           {},
           {},
           "budget"},
          {"blocks",
           "setting with a panel for each value, or none; default: task if there are several",
           {},
           {},
           "task"},
          unit_option()},
         check});
}

}  // namespace kvscope::analysis
