#include "analysis/kv_similarity_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/runs/missing_data.h"
#include "analysis/runs/run_choice.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace prompt_schema = trace::schema::prompt;

constexpr size_t most_maps_in_row = 8;
constexpr std::array<const char*, 2> part_names = {"Keys", "Values"};

struct Cosines {
    size_t n = 0;
    std::array<std::vector<float>, 2> values;

    float of(size_t part, size_t matrix, int a, int b) const {
        return values[part][(matrix * n + static_cast<size_t>(a)) * n + static_cast<size_t>(b)];
    }
};

Cosines read_cosines(const trace::Reader& reader, const FigureOptions& options, size_t n,
                     const trace::schema::DataSet& keys, const trace::schema::DataSet& values) {
    const Place place = Place::of_prompt(options.prompt);
    for (const auto* data_set : {&keys, &values}) require_data(reader, place, *data_set);
    return {n, {reader.read<float>(place, keys), reader.read<float>(place, values)}};
}

Cosines between_layers(const trace::Reader& reader, const FigureOptions& options) {
    auto cosines = read_cosines(reader, options, static_cast<size_t>(reader.model().n_layers),
                                prompt_schema::layer_similarity_k, prompt_schema::layer_similarity_v);
    if (chosen_layers(reader, options).size() < 2)
        throw NothingToShow(
            fmt::format("{}: at least two layers must be chosen to compare them", reader.path().string()));
    return cosines;
}

Cosines within_layers(const trace::Reader& reader, const FigureOptions& options) {
    auto cosines = read_cosines(reader, options, static_cast<size_t>(reader.model().n_kv_heads),
                                prompt_schema::head_similarity_k, prompt_schema::head_similarity_v);
    if (cosines.n < 2)
        throw NothingToShow(fmt::format(
            "{}: the model has only one KV head per layer, so there are no heads to compare", reader.path().string()));
    return cosines;
}

HeatMap map_of(const Cosines& cosines, size_t part, size_t matrix, const std::vector<int>& places) {
    HeatMap map;
    set_map_extent(map, places.size(), places.size());
    for (const int a : places)
        for (const int b : places)
            map.values.push_back(a == b ? std::numeric_limits<float>::quiet_NaN() : cosines.of(part, matrix, a, b));
    map.reduction = Reduction::magnitude;
    return map;
}

Panel panel_of(HeatMap map, const Axis& axis) {
    Panel panel;
    panel.square_cells = true;
    panel.x = panel.y = axis;
    panel.y.reversed = true;
    panel.shapes.emplace_back(std::move(map));
    return panel;
}

void add_scale(Figure& figure) {
    double most = 0;
    for (const Panel& panel : figure.panels)
        for (const float value : std::get<HeatMap>(panel.shapes.front()).values)
            if (std::isfinite(value)) most = std::max(most, std::abs(static_cast<double>(value)));
    ColorScale scale;
    scale.title = "Mean cosine";
    scale.map = ColorMap::blue_white_red;
    scale.max = most > 0 ? most : 1;
    scale.min = -scale.max;
    figure.color_scales.push_back(scale);
}

std::vector<int> numbered(size_t n) {
    std::vector<int> all(n);
    std::iota(all.begin(), all.end(), 0);
    return all;
}

}  // namespace

Figure make_layer_similarity(const trace::Reader& reader, const FigureOptions& options) {
    const Cosines cosines = between_layers(reader, options);
    const std::vector<int> layers = chosen_layers(reader, options);
    Figure figure;
    figure.title = "Similarity of keys and of values between layers";
    figure.width_mm = 174;
    const bool narrow = is_narrow_figure(options);
    (narrow ? figure.rows : figure.columns) = 2;
    (narrow ? figure.shared_x : figure.shared_y) = true;
    for (size_t part = 0; part < 2; ++part) {
        Panel& panel = figure.panels.emplace_back(panel_of(map_of(cosines, part, 0, layers), layer_axis(layers)));
        (narrow ? panel.row : panel.column) = part;
        panel.title = part_names[part];
    }
    add_scale(figure);
    figure.caption =
        "Mean cosine of a token's keys, or of its values, before RoPE in the same KV head of two layers, averaged over "
        "heads "
        "and evenly spaced tokens. The diagonal, which is 1, is not shown.";
    return figure;
}

Table layer_similarity_numbers(const trace::Reader& reader, const FigureOptions& options) {
    const Cosines cosines = between_layers(reader, options);
    const std::vector<int> layers = chosen_layers(reader, options);
    SubjectTable table("spectrum", "Mean cosine of a token's keys, and of its values, in two layers",
                       {SubjectKey::layer_a, SubjectKey::layer_b, Column{"keys", "Keys", "", ColumnType::real, 4},
                        Column{"values", "Values", "", ColumnType::real, 4}});
    for (size_t a = 0; a < layers.size(); ++a)
        for (size_t b = a + 1; b < layers.size(); ++b)
            table.add({{.layer = layers[a]}, {.layer = layers[b]}},
                      {static_cast<double>(cosines.of(0, 0, layers[a], layers[b])),
                       static_cast<double>(cosines.of(1, 0, layers[a], layers[b]))});
    return table.take();
}

Figure make_head_similarity_figure(const trace::Reader& reader, const FigureOptions& options,
                                   const std::vector<int>& layers) {
    const Cosines cosines = within_layers(reader, options);
    const std::vector<int> heads = numbered(cosines.n);
    Figure figure;
    figure.title = "Similarity of keys and of values between the heads of a layer";
    figure.width_mm = layers.size() <= 2 ? 84 : 174;
    figure.columns = std::min(layers.size(), most_maps_in_row);
    const size_t rows_of_part = (layers.size() + figure.columns - 1) / figure.columns;
    figure.rows = 2 * rows_of_part;
    figure.shared_x = figure.shared_y = true;
    const Axis axis = head_axis(heads, false);
    for (size_t part = 0; part < 2; ++part) {
        for (size_t i = 0; i < layers.size(); ++i) {
            Panel& panel = figure.panels.emplace_back(
                panel_of(map_of(cosines, part, static_cast<size_t>(layers[i]), heads), axis));
            panel.row = part * rows_of_part + i / figure.columns;
            panel.column = i % figure.columns;
            panel.title = fmt::format("{}, layer {}", part_names[part], layers[i]);
            panel.subject.layer = layers[i];
        }
    }
    add_scale(figure);
    figure.caption =
        "Mean cosine of a token's keys, or of its values, before RoPE in two KV heads of a layer, averaged over evenly "
        "spaced "
        "tokens. The diagonal, which is 1, is not shown.";
    return figure;
}

Table head_similarity_numbers(const trace::Reader& reader, const FigureOptions& options,
                              const std::vector<int>& layers) {
    const Cosines cosines = within_layers(reader, options);
    SubjectTable table(
        "spectrum", "Mean cosine of a token's keys, and of its values, in two KV heads of a layer",
        {SubjectKey::layer, SubjectKey::head_a, SubjectKey::head_b, Column{"keys", "Keys", "", ColumnType::real, 4},
         Column{"values", "Values", "", ColumnType::real, 4}});
    const int n = static_cast<int>(cosines.n);
    for (const int layer : layers)
        for (int a = 0; a < n; ++a)
            for (int b = a + 1; b < n; ++b)
                table.add({{.layer = layer, .head = a}, {.layer = layer, .head = b}},
                          {static_cast<double>(cosines.of(0, static_cast<size_t>(layer), a, b)),
                           static_cast<double>(cosines.of(1, static_cast<size_t>(layer), a, b))});
    return table.take();
}

}  // namespace kvscope::analysis
