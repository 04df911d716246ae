#include "analysis/head_maps.h"

#include <algorithm>
#include <cmath>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

constexpr double head_mm = 2.6;

HeatMap heat_map(const HeadMap& of, const std::vector<int>& layers) {
    HeatMap map;
    set_map_extent(map, of.n_rows, layers.size());
    for (size_t row = 0; row < of.n_rows; ++row)
        for (const int layer : layers) map.values.push_back(of.values[static_cast<size_t>(layer) * of.n_rows + row]);
    map.reduction = Reduction::mean;
    return map;
}

Panel panel_of(const trace::RunAttributes& attributes, const HeadMap& of, const std::vector<int>& layers,
               bool query_heads) {
    Panel panel;
    panel.subject.run = of.run;
    panel.title = run_label(attributes) + (of.part.empty() ? "" : ", " + of.part);
    panel.part = of.part;
    panel.note = of.note;
    panel.x = layer_axis(layers);
    panel.y = head_axis(of.n_rows, query_heads);
    panel.y.reversed = true;
    panel.shapes.emplace_back(heat_map(of, layers));
    return panel;
}

}  // namespace

void combine_query_heads(std::vector<HeadMap>& maps, const trace::Reader& reader, const FigureOptions& options,
                         OfGroup how) {
    const auto n_kv_heads = static_cast<size_t>(reader.model().n_kv_heads);
    for (HeadMap& map : maps) {
        if (!options.common_unit || map.n_rows <= n_kv_heads || map.n_rows % n_kv_heads != 0) continue;
        const size_t group = map.n_rows / n_kv_heads;
        std::vector<float> values(map.values.size() / group);
        for (size_t i = 0; i < map.values.size(); ++i)
            values[i / group] += how == OfGroup::sum ? map.values[i] : map.values[i] / static_cast<float>(group);
        map.n_rows = n_kv_heads;
        map.values = std::move(values);
    }
}

Figure head_maps_figure(const trace::Reader& reader, const FigureOptions& options, const std::vector<HeadMap>& maps,
                        ColorScale scale) {
    const std::vector<int> layers = chosen_layers(reader, options);
    Figure figure;
    std::vector<int> runs;
    size_t most_rows = 1;
    for (const HeadMap& map : maps) most_rows = std::max(most_rows, map.n_rows);
    lay_out_maps(figure, maps.size(), maps.size() < 3 || is_narrow_figure(options) ? 1 : 2, most_rows, head_mm, 4);
    figure.width_mm = figure.columns == 1 ? 84 : 174;
    figure.shared_y = std::all_of(maps.begin(), maps.end(), [&](const HeadMap& map) {
        const auto granularity = [&](int run) { return reader.run(options.prompt, run).granularity; };
        return map.n_rows == most_rows && granularity(map.run) == granularity(maps.front().run);
    });
    for (size_t i = 0; i < maps.size(); ++i) {
        const trace::RunAttributes& attributes = reader.run(options.prompt, maps[i].run);
        const bool query_heads = !options.common_unit &&
                                 maps[i].n_rows == static_cast<size_t>(reader.model().n_heads) &&
                                 attributes.granularity == trace::schema::run::granularity_query_head;
        Panel panel = panel_of(attributes, maps[i], layers, query_heads);
        panel.row = i / figure.columns;
        panel.column = i % figure.columns;
        const auto& values = std::get<HeatMap>(panel.shapes.front()).values;
        for (const float value : values)
            if (std::isfinite(value)) scale.max = std::max(scale.max, static_cast<double>(value));
        figure.panels.push_back(std::move(panel));
        if (runs.empty() || runs.back() != maps[i].run) runs.push_back(maps[i].run);
    }
    figure.color_scales.push_back(scale);
    complete_figure(figure, reader, options, runs);
    return figure;
}

Table head_maps_numbers(const trace::Reader& reader, const FigureOptions& options, const std::vector<HeadMap>& maps,
                        const std::vector<Column>& measures) {
    std::vector<std::variant<SubjectKey, Column>> columns = {SubjectKey::run, label_column(), budget_column(),
                                                             SubjectKey::layer, SubjectKey::head};
    columns.insert(columns.end(), measures.begin(), measures.end());
    SubjectTable table(std::move(columns));
    const std::vector<int> layers = chosen_layers(reader, options);
    for (size_t i = 0; i < maps.size(); i += measures.size()) {
        const trace::RunAttributes& attributes = reader.run(options.prompt, maps[i].run);
        for (const int layer : layers)
            for (size_t row = 0; row < maps[i].n_rows; ++row) {
                std::vector<Cell> cells = {run_label(attributes), budget_cell(attributes)};
                for (size_t m = 0; m < measures.size(); ++m) {
                    const float value = maps[i + m].values[static_cast<size_t>(layer) * maps[i].n_rows + row];
                    if (measures[m].type == ColumnType::integer)
                        cells.emplace_back(static_cast<int64_t>(value));
                    else
                        cells.emplace_back(double{value});
                }
                table.add(Subject{.run = maps[i].run, .layer = layer, .head = static_cast<int>(row)}, std::move(cells));
            }
    }
    return table.take();
}

}  // namespace kvscope::analysis
