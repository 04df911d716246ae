#include "analysis/gradient_alignment_scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/runs/missing_data.h"
#include "analysis/runs/run_choice.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace measured = trace::schema::prompt;

constexpr std::array<const char*, 3> vector_names = {"c11", "c12", "c22"};

/// Cosines of c11, c12 and c22 with the loss gradient, each (L, H).
struct Alignment {
    size_t n_heads = 0;
    std::array<std::vector<float>, 3> cosines;

    double of(size_t vector, int layer, size_t head) const {
        return static_cast<double>(cosines[vector][static_cast<size_t>(layer) * n_heads + head]);
    }
};

Alignment read_alignment(const trace::Reader& reader, const FigureOptions& options) {
    Alignment alignment;
    alignment.n_heads = static_cast<size_t>(reader.model().n_heads);
    const Place place = Place::of_prompt(options.prompt);
    const std::array data_sets = {&measured::gradient_alignment_c11, &measured::gradient_alignment_c12,
                                  &measured::gradient_alignment_c22};
    for (size_t i = 0; i < data_sets.size(); ++i) {
        require_data(reader, place, *data_sets[i]);
        alignment.cosines[i] = reader.read<float>(place, *data_sets[i]);
    }
    return alignment;
}

double largest_cosine(const Alignment& alignment, const std::vector<int>& layers) {
    double most = 0;
    for (size_t vector = 0; vector < 3; ++vector)
        for (const int layer : layers)
            for (size_t head = 0; head < alignment.n_heads; ++head) {
                const double cosine = std::abs(alignment.of(vector, layer, head));
                if (std::isfinite(cosine)) most = std::max(most, cosine);
            }
    return most;
}

Axis cosine_axis(size_t vector, double limit) {
    Axis axis;
    axis.title = fmt::format("cos(E, {})", vector_names[vector]);
    axis.min = -limit;
    axis.max = limit;
    return axis;
}

Line diagonal(double limit, bool falls) {
    Line line;
    line.x = {-limit, limit};
    line.y = {falls ? limit : -limit, falls ? -limit : limit};
    line.style.color = Rgb{150, 150, 150};
    line.style.dash = Dash::dashed;
    line.style.width_pt = 0.5;
    return line;
}

Scatter points_of(const Alignment& alignment, int layer, size_t x, size_t y, Rgb color) {
    Scatter points;
    points.label = fmt::format("layer {}", layer);
    points.subject.layer = layer;
    points.dimension = Dimension::query_head;
    points.size_pt = 2.6;
    points.color = color;
    for (size_t head = 0; head < alignment.n_heads; ++head) {
        points.x.push_back(alignment.of(x, layer, head));
        points.y.push_back(alignment.of(y, layer, head));
    }
    return points;
}

}  // namespace

Figure make_gradient_alignment_figure(const trace::Reader& reader, const FigureOptions& options,
                                      const std::vector<int>& layers) {
    const Alignment alignment = read_alignment(reader, options);
    const double limit = std::max(1.1 * largest_cosine(alignment, layers), 1e-3);
    Figure figure;
    figure.title = "Alignment of the loss gradient with c11, c12 and c22";
    figure.width_mm = 174;
    figure.panel_height_mm = 44;
    const bool narrow = is_narrow_figure(options);
    (narrow ? figure.rows : figure.columns) = 3;
    constexpr std::array<std::array<size_t, 2>, 3> pairs = {{{0, 1}, {0, 2}, {1, 2}}};
    for (const auto& [x, y] : pairs) {
        Panel panel;
        (narrow ? panel.row : panel.column) = figure.panels.size();
        panel.title = fmt::format("{} and {}", vector_names[x], vector_names[y]);
        panel.x = cosine_axis(x, limit);
        panel.y = cosine_axis(y, limit);
        panel.shapes.emplace_back(diagonal(limit, x == 1 || y == 1));
        for (size_t i = 0; i < layers.size(); ++i)
            panel.shapes.emplace_back(points_of(alignment, layers[i], x, y, layer_color(i, layers.size())));
        figure.panels.push_back(std::move(panel));
    }
    for (size_t i = 0; i < layers.size(); ++i) {
        LineStyle style{layer_color(i, layers.size())};
        style.marker = Marker::circle;
        figure.legend.push_back({fmt::format("layer {}", layers[i]), LegendEntry::Symbol::marker, style});
    }
    figure.caption =
        "Cosines of KVSlimmer's terms c11, c12 and c22 with the gradient E of the next-token loss at the head's "
        "output, averaged over queries and adjacent tokens. Each point is a query head. Dashed: cos(E, c11) = cos(E, "
        "c22) = −cos(E, c12).";
    return figure;
}

Table alignment_numbers(const trace::Reader& reader, const FigureOptions& options, const std::vector<int>& layers) {
    const Alignment alignment = read_alignment(reader, options);
    std::vector<std::variant<SubjectKey, Column>> columns = {SubjectKey::layer, SubjectKey::head};
    for (const char* vector : vector_names)
        columns.emplace_back(
            Column{fmt::format("cos_{}", vector), fmt::format("cos(E, {})", vector), "", ColumnType::real, 4});
    SubjectTable table(
        "spectrum",
        "Cosines of KVSlimmer's terms c11, c12 and c22 with the gradient of the next-token loss at the head's output",
        std::move(columns));
    for (const int layer : layers)
        for (size_t head = 0; head < alignment.n_heads; ++head) {
            std::vector<Cell> cells;
            for (size_t vector = 0; vector < 3; ++vector) cells.emplace_back(alignment.of(vector, layer, head));
            table.add(Subject{.layer = layer, .head = static_cast<int>(head), .query_heads = true}, std::move(cells));
        }
    return table.take();
}

}  // namespace kvscope::analysis
