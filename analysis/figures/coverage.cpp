#include "analysis/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/figure_definition.h"
#include "analysis/layer_axis.h"
#include "analysis/run_choice.h"
#include "analysis/shown_runs.h"
#include "analysis/table_format.h"

namespace kvscope::analysis {
namespace {

struct Run {
    ShownRun shown;
    std::vector<Coverage> layers;  ///< all of the model's
    Coverage model;
};

std::vector<Run> read_runs(std::span<const TracePart> parts) {
    std::vector<Run> runs;
    for (const ShownRun& shown : shown_runs(parts)) {
        const auto kept = shown.part->reader->kept(shown.part->options.prompt, shown.index);
        const KeptSets sets = kept_sets(*kept, shown.n_tokens());
        runs.push_back({shown, layer_coverage(sets), model_coverage(sets)});
    }
    return runs;
}

double percent(const Coverage& coverage) { return 100 * coverage.share; }

Axis percent_axis(double largest) {
    Axis axis;
    axis.title = "Coverage";
    axis.unit = "% of tokens";
    axis.min = 0;
    axis.max = largest >= 95 ? 105 : std::max(largest * 1.08, 1e-3);
    if (largest >= 95) {
        for (const int tick : {0, 25, 50, 75, 100})
            axis.ticks.push_back({static_cast<double>(tick), std::to_string(tick)});
    }
    return axis;
}

Panel layers_panel(const std::vector<Run>& runs) {
    Panel panel;
    panel.title = "Each layer";
    double largest = 0;
    size_t most_layers = 0;
    for (const Run& run : runs) {
        const std::vector<int> layers = chosen_layers(*run.shown.part->reader, run.shown.part->options);
        if (layers.size() > most_layers) panel.x = layer_axis(layers);
        most_layers = std::max(most_layers, layers.size());
        Line line;
        line.label = run.shown.label;
        line.style = run.shown.style;
        if (layers.size() > 1) line.style.marker = Marker::none;
        for (size_t i = 0; i < layers.size(); ++i) {
            line.x.push_back(static_cast<double>(i));
            line.y.push_back(percent(run.layers[static_cast<size_t>(layers[i])]));
            largest = std::max(largest, line.y.back());
        }
        panel.layers.emplace_back(std::move(line));
    }
    panel.y = percent_axis(largest);
    return panel;
}

/// Whole-model coverage over the budget: runs that differ in nothing else are joined.
Panel model_panel(const std::vector<Run>& runs) {
    Panel panel;
    panel.title = "Whole model";
    std::vector<int64_t> budgets;
    for (const Run& run : runs) budgets.push_back(run.shown.attributes().budget);
    std::sort(budgets.begin(), budgets.end());
    budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
    panel.x.title = "Budget";
    panel.x.unit = "entries a head";
    panel.x.min = -0.5;
    panel.x.max = static_cast<double>(budgets.size()) - 0.5;
    for (size_t i = 0; i < budgets.size(); ++i) {
        panel.x.ticks.push_back({static_cast<double>(i), format_count(budgets[i])});
    }
    double largest = 0;
    std::map<std::string, Line> lines;
    std::vector<std::string> order;
    std::vector<Layer> points;
    for (const Run& run : runs) {
        const trace::RunAttributes& attributes = run.shown.attributes();
        const std::string method = run.shown.method();
        if (lines.find(method) == lines.end()) order.push_back(method);
        Line& line = lines[method];
        line.label = attributes.policy;
        line.style.color = run.shown.style.color;
        line.style.width_pt = 0.5;
        const auto place =
            static_cast<double>(std::find(budgets.begin(), budgets.end(), attributes.budget) - budgets.begin());
        line.x.push_back(place);
        line.y.push_back(percent(run.model));
        largest = std::max(largest, line.y.back());
        Scatter point;
        point.label = run.shown.label;
        point.x = {place};
        point.y = {percent(run.model)};
        point.marker = run.shown.style.marker;
        point.size_pt = 3.2;
        point.color = run.shown.style.color;
        points.emplace_back(std::move(point));
    }
    for (const std::string& method : order) {
        if (lines[method].x.size() > 1) panel.layers.emplace_back(std::move(lines[method]));
    }
    std::move(points.begin(), points.end(), std::back_inserter(panel.layers));
    panel.y = percent_axis(largest);
    return panel;
}

Figure make(std::span<const TracePart> parts) {
    const std::vector<Run> runs = read_runs(parts);
    std::vector<ShownRun> shown;
    for (const Run& run : runs) shown.push_back(run.shown);

    Figure figure;
    figure.name = "coverage";
    figure.title = "Prompt tokens that at least one head keeps";
    figure.width_mm = 174;
    figure.panel_height_mm = 48;
    figure.panels.push_back(layers_panel(runs));
    figure.panels.push_back(model_panel(runs));
    if (is_narrow(parts.front().options)) {
        figure.rows = 2;
        figure.panels[1].row = 1;
    } else {
        figure.columns = 2;
        figure.column_widths = {3, 1};
        figure.panels[1].column = 1;
    }
    figure.legend = legend_of(shown);
    const bool one_prompt = std::all_of(
        shown.begin(), shown.end(), [&](const ShownRun& run) { return run.n_tokens() == shown.front().n_tokens(); });
    figure.caption = fmt::format(
        "Share of the prompt's {}tokens that at least one head of a layer keeps, and (right) that at least one head "
        "of any layer keeps.",
        one_prompt ? fmt::format("{} ", shown.front().n_tokens()) : "");
    complete_figure(figure, parts, shown);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    Table table;
    table.name = "coverage";
    table.title = "Prompt tokens that at least one head of a layer keeps; without a layer: of any layer";
    table.columns = {{"run", "Run", "", ColumnType::integer},
                     {"label", "Label", "", ColumnType::text},
                     {"policy", "Policy", "", ColumnType::text},
                     {"budget", "Budget", "", ColumnType::integer},
                     {"layer", "Layer", "", ColumnType::integer},
                     {"tokens", "Tokens", "", ColumnType::integer},
                     {"share", "Share of prompt", "", ColumnType::real, 4}};
    const std::vector<int> layers = chosen_layers(reader, options);
    const TracePart part{&reader, options};
    for (const Run& run : read_runs({&part, 1})) {
        const trace::RunAttributes& attributes = run.shown.attributes();
        const auto add = [&](Cell layer, const Coverage& coverage) {
            table.rows.push_back({{int64_t{run.shown.index}, run.shown.label, attributes.policy, attributes.budget,
                                   std::move(layer), static_cast<int64_t>(coverage.count), coverage.share}});
        };
        add(std::monostate{}, run.model);
        for (const int layer : layers) add(int64_t{layer}, run.layers[static_cast<size_t>(layer)]);
    }
    return table;
}

}  // namespace

FigureDefinition coverage_figure() {
    return {"coverage",
            "Coverage",
            "Share of prompt tokens that at least one head keeps, by layer and for the whole model, one line per run",
            {{"runs", "labels, policies or numbers of runs; default: all but full"},
             {"layers", "default: all; the whole model's coverage always counts all"}},
            of_one_trace<make>,
            numbers,
            "K-VEC, Tables 6 and 7",
            make};
}

}  // namespace kvscope::analysis
