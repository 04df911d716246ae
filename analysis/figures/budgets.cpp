#include <fmt/format.h>

#include <algorithm>

#include "analysis/figure_definition.h"
#include "analysis/head_budget.h"
#include "analysis/layer_axis.h"
#include "analysis/run_choice.h"
#include "analysis/run_style.h"
#include "analysis/table_format.h"

namespace kvscope::analysis::budgets_file {
namespace {

constexpr double kHeadMm = 2.6;
constexpr double kPageMm = 190;

struct Run {
    int index = 0;
    size_t n_rows = 0;
    bool query_heads = false;
    std::vector<uint32_t> budgets;  ///< (L, R)
};

std::vector<Run> read_runs(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<Run> runs;
    for (const int j : chosen_runs(reader, options)) {
        const auto kept = reader.kept(options.prompt, j);
        const auto n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
        runs.push_back({j, kept->n_rows,
                        reader.run(options.prompt, j).granularity == trace::schema::run::granularity_query_head,
                        head_budgets(kept_sets(*kept, n_tokens))});
    }
    return runs;
}

/// (R, layers): heads downwards, layers to the right.
HeatMap heat_map(const Run& run, const std::vector<int>& layers) {
    HeatMap map;
    map.rows = run.n_rows;
    map.columns = layers.size();
    for (size_t row = 0; row < run.n_rows; ++row) {
        for (const int layer : layers) {
            map.values.push_back(static_cast<float>(run.budgets[static_cast<size_t>(layer) * run.n_rows + row]));
        }
    }
    map.x_begin = map.y_begin = -0.5;
    map.x_end = static_cast<double>(map.columns) - 0.5;
    map.y_end = static_cast<double>(map.rows) - 0.5;
    map.reduction = Reduction::mean;
    return map;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<Run> runs = read_runs(reader, options);
    const std::vector<int> layers = chosen_layers(reader, options);
    Figure figure;
    figure.name = "budgets";
    figure.title = "Entries that each head keeps";
    figure.columns = runs.size() < 3 || is_narrow(options) ? 1 : 2;
    figure.rows = (runs.size() + figure.columns - 1) / figure.columns;
    figure.shared_x = true;
    figure.width_mm = figure.columns == 1 ? 84 : 174;
    ColorScale scale;
    scale.title = "Entries kept";
    std::vector<int> indices;
    size_t most_rows = 1;
    for (size_t i = 0; i < runs.size(); ++i) {
        const Run& run = runs[i];
        const trace::RunAttributes& attributes = reader.run(options.prompt, run.index);
        indices.push_back(run.index);
        most_rows = std::max(most_rows, run.n_rows);
        std::vector<int> heads;
        for (size_t row = 0; row < run.n_rows; ++row) heads.push_back(static_cast<int>(row));
        Panel panel;
        panel.row = i / figure.columns;
        panel.column = i % figure.columns;
        panel.title = run_label(attributes);
        panel.x = layer_axis(layers);
        panel.y = layer_axis(heads);
        panel.y.title = run.query_heads ? "Query head" : "KV head";
        panel.y.reversed = true;
        HeatMap map = heat_map(run, layers);
        const auto [least, most] = std::minmax_element(map.values.begin(), map.values.end());
        panel.note = *least == *most ? format_count(static_cast<int64_t>(*least))
                                     : fmt::format("{} to {}", format_count(static_cast<int64_t>(*least)),
                                                   format_count(static_cast<int64_t>(*most)));
        scale.max = i == 0 ? static_cast<double>(*most) : std::max(scale.max, static_cast<double>(*most));
        panel.layers.emplace_back(std::move(map));
        figure.panels.push_back(std::move(panel));
    }
    scale.max = std::max(scale.max, 1.0);
    figure.color_scales.push_back(scale);
    const double room_mm = kPageMm / static_cast<double>(figure.rows) - 5;
    figure.panel_height_mm = std::clamp(kHeadMm * static_cast<double>(most_rows), 4.0, std::max(4.0, room_mm));
    figure.caption = "Entries that each head of each layer keeps of the prompt, window and sinks included.";
    complete_figure(figure, reader, options, indices);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    check_runs_and_layers(reader, options);
    Table table;
    table.name = "budgets";
    table.title = "Entries that each head keeps";
    table.columns = {{"run", "Run", "", ColumnType::integer},       {"label", "Label", "", ColumnType::text},
                     {"budget", "Budget", "", ColumnType::integer}, {"layer", "Layer", "", ColumnType::integer},
                     {"head", "Head", "", ColumnType::integer},     {"entries", "Entries", "", ColumnType::integer}};
    const std::vector<int> layers = chosen_layers(reader, options);
    for (const Run& run : read_runs(reader, options)) {
        const trace::RunAttributes& attributes = reader.run(options.prompt, run.index);
        for (const int layer : layers) {
            for (size_t row = 0; row < run.n_rows; ++row) {
                table.rows.push_back(
                    {{int64_t{run.index}, run_label(attributes), attributes.budget, int64_t{layer},
                      static_cast<int64_t>(row), int64_t{run.budgets[static_cast<size_t>(layer) * run.n_rows + row]}}});
            }
        }
    }
    return table;
}

}  // namespace
}  // namespace kvscope::analysis::budgets_file

namespace kvscope::analysis {

FigureDefinition budgets_figure() {
    using namespace budgets_file;
    return {"budgets",
            "Budgets",
            "Heads by layers: how many entries each head keeps, one map per run on one colour scale",
            {{"runs", "labels, policies or numbers of runs; default: all but full"}, {"layers", "default: all"}},
            check_runs_and_layers,
            make,
            numbers};
}

}  // namespace kvscope::analysis
