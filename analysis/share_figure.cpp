#include "analysis/share_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/covered_curves.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/results/settings.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "analysis/tables/table_format.h"
#include "common/bounded_json.h"

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

using Runs = std::vector<const RunShares*>;

double largest_of_layers(std::span<const RunShares> runs) {
    double largest = 0;
    for (const RunShares& run : runs)
        for (const int layer : chosen_layers(*run.shown.part->reader, run.shown.part->options))
            largest = std::max(largest, std::abs(100 * run.layers[static_cast<size_t>(layer)]));
    return largest;
}

Panel layers_panel(const std::vector<Runs>& lines) {
    Panel panel;
    size_t most_layers = 0;
    for (const Runs& of_line : lines) {
        const RunShares& run = *of_line.front();
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
        }
        panel.shapes.emplace_back(std::move(line));
    }
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

/// Axis of windows, from the smallest to the largest.
Axis window_axis(std::span<const RunShares> runs) {
    std::set<double> windows;
    for (const RunShares& run : runs) windows.insert(window_parameter(run.shown.attributes()).value_or(1));
    Axis axis;
    axis.title = "Window";
    axis.unit = "queries";
    const double least = std::max(*windows.begin(), 1.0), most = std::max(*windows.rbegin(), 1.0);
    const double margin = least < most ? std::pow(most / least, 0.08) : 2;
    axis.scale = Scale::logarithmic;
    axis.min = least / margin;
    axis.max = most * margin;
    double last = 0;
    for (const double window : windows) {
        // A label needs a tenth of the axis, and the largest window always has one.
        const auto is_near = [&](double from, double to) {
            return from > 0 && std::log(to / from) < 0.1 * std::log(axis.max / axis.min);
        };
        if (window != most && (is_near(last, window) || is_near(window, most))) continue;
        axis.ticks.push_back({window, format_count(static_cast<int64_t>(window))});
        last = window;
    }
    return axis;
}

/// Returns "snapkv:beta=2 64", the policy's setting without the window, and the budget.
std::string label_without_window(const ShownRun& shown) {
    Result result;
    result.row.policy = shown.attributes().policy;
    result.row.parameters_json = shown.attributes().parameters_json;
    const Cell budget = budget_cell(shown.attributes());
    const auto* entries = std::get_if<int64_t>(&budget);
    const std::string text = entries ? std::to_string(*entries) : std::get<SharedText>(budget).string();
    const std::string label = fmt::format("{} {}", setting_without(result, "window"), text);
    return shown.part->name.empty() ? label : fmt::format("{}: {}", shown.part->name, label);
}

/// Returns a key that is equal for runs that differ only in their windows.
std::string key_without_window(const ShownRun& shown) {
    const trace::RunAttributes& run = shown.attributes();
    auto parameters = bounded_json::parse_or_discard(run.parameters_json);
    if (parameters.is_object()) parameters.erase("window");
    const auto [entries, share] = budget_sort_key(run);
    return fmt::format("{}\n{}\n{}\n{} {}", shown.trace, run.policy,
                       parameters.is_object() ? parameters.dump() : run.parameters_json, entries, share);
}

/// Returns the runs of each line, in the order of the lines' first runs.
std::vector<Runs> lines_of(std::span<const RunShares> runs, ShareAxes axis) {
    std::vector<Runs> lines;
    std::map<std::string, size_t> places;
    for (const RunShares& run : runs) {
        const std::string key = axis == ShareAxes::budget   ? run.shown.method()
                                : axis == ShareAxes::window ? key_without_window(run.shown)
                                                            : std::to_string(lines.size());
        const auto [place, is_new] = places.try_emplace(key, lines.size());
        if (is_new) lines.emplace_back();
        lines[place->second].push_back(&run);
    }
    return lines;
}

/// Lines of the whole model, with a point for each run.
Panel model_panel(const std::vector<Runs>& lines, ShareAxes axis, const BudgetAxis& budgets) {
    Panel panel;
    std::vector<Shape> points;
    for (const Runs& runs : lines) {
        const ShownRun& first = runs.front()->shown;
        Line line;
        line.label = axis == ShareAxes::window ? label_without_window(first) : first.attributes().policy;
        line.series = first.series();
        line.style.color = first.style.color;
        line.style.width_pt = 0.5;
        if (axis == ShareAxes::window) {
            line.style.dash = first.style.dash;
            line.style.width_pt = 1;
        }
        for (const RunShares* run : runs) {
            const trace::RunAttributes& attributes = run->shown.attributes();
            line.x.push_back(axis == ShareAxes::window ? std::max(window_parameter(attributes).value_or(1), 1.0)
                                                       : budgets.place(attributes));
            line.y.push_back(100 * run->model);
            Scatter point;
            point.label = run->shown.label;
            point.subject = run->shown.subject();
            point.series = line.series;
            point.x = {line.x.back()};
            point.y = {line.y.back()};
            point.marker = run->shown.style.marker;
            point.size_pt = 3.2;
            point.color = line.style.color;
            points.emplace_back(std::move(point));
        }
        if (line.x.size() < 2) continue;
        sort_by_x(line);
        panel.shapes.emplace_back(std::move(line));
    }
    std::move(points.begin(), points.end(), std::back_inserter(panel.shapes));
    return panel;
}

/// Lines of one panel.
struct PanelLines {
    std::string title;
    std::vector<Runs> lines;
};

/// Divides lines into parts of nearly equal size, with the settings of a policy next to each other.
void add_parts(std::vector<PanelLines>& panels, PanelLines all, size_t most_lines) {
    std::map<std::string, size_t> places;  // of policies, in the order of their first lines
    for (const Runs& line : all.lines) places.try_emplace(line.front()->shown.attributes().policy, places.size());
    std::ranges::stable_sort(all.lines, {},
                             [&](const Runs& line) { return places.at(line.front()->shown.attributes().policy); });
    const size_t n = all.lines.size(), n_parts = (n - 1) / most_lines + 1;
    for (size_t part = 0; part < n_parts; ++part) {
        PanelLines& panel = panels.emplace_back();
        panel.title = n_parts == 1 ? all.title : fmt::format("{}, {} of {}", all.title, part + 1, n_parts);
        for (size_t i = part * n / n_parts; i < (part + 1) * n / n_parts; ++i) panel.lines.push_back(all.lines[i]);
    }
}

/// Returns one panel, or a panel for each budget if there are too many lines. Lines over budgets, and lines of which no
/// two have one budget, are divided in order.
std::vector<PanelLines> divide(std::vector<Runs> lines, const std::string& title, bool have_one_budget, size_t most) {
    if (lines.size() <= most) return {{title, std::move(lines)}};
    std::vector<PanelLines> panels;
    std::map<std::pair<bool, BudgetKey>, PanelLines> by_budget;
    for (const Runs& line : lines) {
        const trace::RunAttributes& run = line.front()->shown.attributes();
        PanelLines& of_budget = by_budget[{has_budget_of_bytes(run), budget_sort_key(run)}];
        const Cell budget = budget_cell(run);
        const auto* entries = std::get_if<int64_t>(&budget);
        of_budget.title = "Budget " + (entries ? format_count(*entries) : std::get<SharedText>(budget).string());
        of_budget.lines.push_back(line);
    }
    if (!have_one_budget || by_budget.size() == lines.size()) {
        add_parts(panels, {title, std::move(lines)}, most);
        return panels;
    }
    for (auto& [budget, of_budget] : by_budget) add_parts(panels, std::move(of_budget), most);
    return panels;
}

void arrange(Figure& figure, const FigureOptions& options, ShareAxes axes) {
    const size_t n = figure.panels.size();
    const bool is_narrow = is_narrow_figure(options);
    if (axes == ShareAxes::layer_and_budget && n == 2 && !is_narrow) figure.column_widths = {3, 1};
    const size_t most_columns = axes == ShareAxes::budget || axes == ShareAxes::window ? 3 : 2;
    figure.columns = is_narrow ? 1 : std::min(n, most_columns);
    figure.rows = (n + figure.columns - 1) / figure.columns;
    for (size_t i = 0; i < n; ++i) {
        figure.panels[i].row = i / figure.columns;
        figure.panels[i].column = i % figure.columns;
    }
    figure.shared_x = figure.shared_y = axes != ShareAxes::layer_and_budget && n > 1;
    figure.width_mm = n == 1 && axes != ShareAxes::layer ? 84 : 174;
    figure.panel_height_mm = 48;
}

Figure draw_shares(const FigureOptions& options, std::span<const RunShares> runs, const ShareMeasure& measure,
                   bool difference, const ShareLayout& layout) {
    Figure figure;
    const auto add = [&](Panel panel, const std::string& title, double largest) {
        panel.title = title;
        panel.y = percent_axis(measure, largest, difference);
        if (difference) panel.shapes.emplace_back(zero_line());
        figure.panels.push_back(std::move(panel));
    };
    const ShareAxes axes = layout.axes;
    if (axes == ShareAxes::layer || axes == ShareAxes::layer_and_budget) {
        const double largest = largest_of_layers(runs);
        for (const auto& [title, lines] :
             divide(lines_of(runs, ShareAxes::layer), "Each layer", true, layout.most_lines))
            add(layers_panel(lines), title, largest);
    }
    if (axes != ShareAxes::layer) {
        const ShareAxes axis = axes == ShareAxes::window ? ShareAxes::window : ShareAxes::budget;
        const BudgetAxis budgets(runs);
        const Axis x = axis == ShareAxes::window ? window_axis(runs) : budgets.axis();
        double largest = 0;
        for (const RunShares& run : runs) largest = std::max(largest, std::abs(100 * run.model));
        for (const auto& [title, lines] :
             divide(lines_of(runs, axis), "Whole model", axis == ShareAxes::window, layout.most_lines)) {
            Panel panel = model_panel(lines, axis, budgets);
            panel.x = x;
            add(std::move(panel), title, largest);
        }
    }
    arrange(figure, options, axes);
    return figure;
}

/// Returns an entry for each line over the window.
std::vector<LegendEntry> legend_of_windows(std::span<const RunShares> runs) {
    std::vector<LegendEntry> legend;
    for (const Runs& line : lines_of(runs, ShareAxes::window)) {
        const ShownRun& first = line.front()->shown;
        legend.push_back({label_without_window(first), LegendEntry::Symbol::line, first.style, "", "", first.series()});
    }
    return legend;
}

void check_layers(const SharePair& pair) {
    if (pair.a.layers.size() == pair.b.layers.size()) return;
    throw NothingToShow(
        fmt::format("A − B needs models with equal numbers of layers: {} has {} layers in A and {} in B",
                    pair.shown.label, pair.a.layers.size(), pair.b.layers.size()));
}

}  // namespace

ShareAxes share_axes_from_name(const std::string& name) {
    if (name.empty()) return ShareAxes::layer_and_budget;
    if (name == "layer") return ShareAxes::layer;
    if (name == "budget") return ShareAxes::budget;
    if (name == "window") return ShareAxes::window;
    throw FigureError(fmt::format("--over is layer, budget or window, not '{}'", name));
}

std::optional<double> window_parameter(const trace::RunAttributes& run) {
    const auto parameters = bounded_json::parse_or_discard(run.parameters_json);
    if (!parameters.is_object()) return std::nullopt;
    const auto window = parameters.find("window");
    if (window == parameters.end() || !window->is_number()) return std::nullopt;
    return window->get<double>();
}

std::vector<bool> differ_only_in_window(std::span<const ShownRun> runs) {
    std::map<std::string, std::set<double>> windows;
    for (const ShownRun& run : runs)
        if (const auto window = window_parameter(run.attributes())) windows[key_without_window(run)].insert(*window);
    std::vector<bool> differ;
    for (const ShownRun& run : runs)
        differ.push_back(window_parameter(run.attributes()) && windows.at(key_without_window(run)).size() > 1);
    return differ;
}

Figure share_figure(std::span<const TracePart> parts, std::span<const RunShares> runs, const ShareMeasure& measure,
                    const ShareLayout& layout) {
    std::vector<ShownRun> shown;
    for (const RunShares& run : runs) shown.push_back(run.shown);
    Figure figure = draw_shares(parts.front().options, runs, measure, false, layout);
    figure.legend = layout.axes == ShareAxes::window ? legend_of_windows(runs) : legend_of_runs(shown);
    complete_figure(figure, parts, shown);
    if (parts.size() == 1) mark_hidden_series(figure);  // must follow complete_figure(), which shortens labels
    return figure;
}

Figure share_difference_figure(std::span<const TracePart, 2> sides, std::span<const SharePair> pairs,
                               const ShareMeasure& measure, const ShareLayout& layout) {
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
    Figure figure = draw_shares(sides[0].options, differences, measure, true, layout);
    figure.panels[0].title += ": " + difference_title(sides, shown);
    figure.legend = layout.axes == ShareAxes::window ? legend_of_windows(differences) : legend_of_pairs(sides, shown);
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
