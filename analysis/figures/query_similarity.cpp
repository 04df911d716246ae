#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/color_map.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/figures_of_several_traces.h"
#include "analysis/runs/missing_data.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/shown_runs.h"
#include "kernels/cosine.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace schema = trace::schema;

constexpr int n_layers_shown = 4;
constexpr int n_heads_shown = 9;
constexpr size_t most_columns = 9;

enum class Source { matrices, mean_by_layer };

Source source_from_name(const std::string& name) {
    if (name.empty() || name == "matrices") return Source::matrices;
    if (name == "mean-by-layer" || name == "mean_by_layer") return Source::mean_by_layer;
    throw FigureError(
        fmt::format("the figure query-similarity has no source '{}'; it has matrices, mean-by-layer", name));
}

struct Choice {
    std::vector<int> layers;
    std::vector<int> heads;
    int64_t window = 0;
    int64_t n_tokens = 0;
};

Choice chosen(const trace::Reader& reader, const FigureOptions& options, Source source) {
    check_prompt(reader, options.prompt);
    require_data(reader, Place::of_prompt(options.prompt), schema::prompt::query_similarity);
    const auto n_layers = static_cast<int>(reader.model().n_layers);
    const auto n_heads = static_cast<int>(reader.model().n_heads);
    const bool all = source == Source::mean_by_layer;
    Choice choice;
    choice.layers = options.layers.empty() ? evenly_spaced(n_layers, all ? n_layers : n_layers_shown)
                                           : chosen_layers(reader, options);
    choice.heads =
        options.heads.empty() ? evenly_spaced(n_heads, all ? n_heads : n_heads_shown) : chosen_heads(reader, options);
    choice.window = reader.prompt(options.prompt).window;
    choice.n_tokens = reader.prompt(options.prompt).visible_tokens();
    return choice;
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    chosen(reader, options, source_from_name(options.source));
}

/// Returns the cosines between the queries of each head (H, w, w).
std::vector<float> matrices(const trace::Reader& reader, int prompt, int layer) {
    return reader.read_layer<float>(Place::of_prompt(prompt), schema::prompt::query_similarity,
                                    static_cast<size_t>(layer));
}

/// Returns how many layers stand side by side, so that a few heads of many layers form a grid.
size_t layers_per_row(const Choice& choice) {
    const size_t n_layers = choice.layers.size(), n_heads = choice.heads.size();
    const auto square =
        static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(n_layers) / static_cast<double>(n_heads))));
    return std::clamp<size_t>(square, 1, std::max<size_t>(most_columns / n_heads, 1));
}

size_t area(const Choice& choice) { return static_cast<size_t>(choice.window * choice.window); }

Figure make_matrices(const trace::Reader& reader, const FigureOptions& options) {
    const Choice choice = chosen(reader, options, Source::matrices);
    Figure figure;
    figure.title = "Cosine similarity of the window's queries";
    const size_t per_row = layers_per_row(choice);
    figure.rows = (choice.layers.size() + per_row - 1) / per_row;
    figure.columns = per_row * choice.heads.size();
    figure.shared_x = true;
    figure.shared_y = true;
    figure.width_mm = figure.columns <= 2 ? 84 : 174;
    double smallest = 1;
    for (size_t i = 0; i < choice.layers.size(); ++i) {
        const std::vector<float> all = matrices(reader, options.prompt, choice.layers[i]);
        for (size_t j = 0; j < choice.heads.size(); ++j) {
            Panel panel;
            panel.row = i / per_row;
            panel.column = i % per_row * choice.heads.size() + j;
            panel.title = fmt::format("L{} H{}", choice.layers[i], choice.heads[j]);
            panel.subject.layer = choice.layers[i];
            panel.subject.head = choice.heads[j];
            panel.subject.query_heads = true;
            panel.square_cells = true;
            panel.x.title = "Prompt token of the query";
            panel.x.dimension = Dimension::token;
            panel.x.whole_numbers = true;
            panel.x.max = static_cast<double>(choice.n_tokens) - 0.5;
            panel.x.min = panel.x.max - static_cast<double>(choice.window);
            panel.y = panel.x;
            panel.y.reversed = true;
            HeatMap map;
            map.rows = map.columns = static_cast<size_t>(choice.window);
            const auto first =
                all.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(choice.heads[j]) * area(choice));
            map.values.assign(first, first + static_cast<std::ptrdiff_t>(area(choice)));
            for (const float value : map.values) {
                if (std::isfinite(value)) smallest = std::min(smallest, static_cast<double>(value));
            }
            map.x_begin = map.y_begin = panel.x.min;
            map.x_end = map.y_end = panel.x.max;
            map.reduction = Reduction::mean;
            panel.shapes.emplace_back(std::move(map));
            figure.panels.push_back(std::move(panel));
        }
    }
    ColorScale scale;
    scale.title = "Cosine of the two queries";
    scale.min = std::min(std::floor(smallest * 10) / 10, 0.9);
    scale.max = 1;
    figure.color_scales.push_back(scale);
    figure.caption = fmt::format(
        "Cosine similarity between each pair of the prompt's last {} queries, after RoPE, by layer (L) and query head "
        "(H).",
        choice.window);
    return figure;
}

/// Mean, minimum and maximum over the heads of a layer. A head's value is its mean over pairs of different queries.
struct LayerMeans {
    double mean = 0;
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
};

std::vector<double> head_means(const trace::Reader& reader, int prompt, int layer, const Choice& choice) {
    const std::vector<float> all = matrices(reader, prompt, layer);
    std::vector<double> means;
    for (const int head : choice.heads) {
        means.push_back(
            kernels::mean_off_diagonal(all.data() + static_cast<size_t>(head) * area(choice), choice.window));
    }
    return means;
}

LayerMeans layer_means(const std::vector<double>& of_heads) {
    LayerMeans means;
    for (const double value : of_heads) {
        means.mean += value / static_cast<double>(of_heads.size());
        means.low = std::min(means.low, value);
        means.high = std::max(means.high, value);
    }
    return means;
}

Line curve(const TracePart& part, const Choice& choice, Rgb color) {
    const trace::Reader& reader = *part.reader;
    const FigureOptions& options = part.options;
    Line line;
    line.label = part.name.empty() ? "mean over heads" : part.name;
    line.style.color = color;
    if (choice.layers.size() == 1) line.style.marker = Marker::circle;
    for (size_t i = 0; i < choice.layers.size(); ++i) {
        const LayerMeans means = layer_means(head_means(reader, options.prompt, choice.layers[i], choice));
        line.x.push_back(static_cast<double>(i));
        line.y.push_back(means.mean);
        line.low.push_back(means.low);
        line.high.push_back(means.high);
    }
    return line;
}

Figure make_curves(std::span<const TracePart> parts) {
    constexpr std::array<size_t, 5> colors = {4, 3, 2, 0, 5};  // blue, vermillion, green, orange, purple
    Figure figure;
    figure.title = "Mean cosine similarity of the window's queries";
    Panel panel;
    panel.y.title = "Mean cosine";
    double smallest = 0, largest = 0;
    size_t most_layers = 0;
    int64_t window = 0;
    std::exception_ptr nothing;
    for (size_t i = 0; i < parts.size(); ++i) {
        try {
            const Choice choice = chosen(*parts[i].reader, parts[i].options, Source::mean_by_layer);
            Line line = curve(parts[i], choice, okabe_ito()[colors[i % colors.size()]]);
            line.subject.trace = i;
            smallest = std::min(smallest, *std::min_element(line.low.begin(), line.low.end()));
            largest = std::max(largest, *std::max_element(line.high.begin(), line.high.end()));
            if (choice.layers.size() > most_layers) panel.x = layer_axis(choice.layers);
            most_layers = std::max(most_layers, choice.layers.size());
            window = std::max(window, choice.window);
            figure.legend.push_back({line.label, LegendEntry::Symbol::line, line.style});
            panel.shapes.emplace_back(std::move(line));
        } catch (const NothingToShow&) {
            if (!nothing) nothing = std::current_exception();
        }
    }
    if (panel.shapes.empty()) std::rethrow_exception(nothing);
    panel.y.min = smallest < 0 ? std::max(-1.0, smallest * 1.08) : 0;
    panel.y.max = std::min(1.0, std::max(largest * 1.08, 1e-3));
    LineStyle band = figure.legend.front().style;
    const auto paler = [](uint8_t c) { return static_cast<uint8_t>(255 - (255 - c) / 5); };
    band.color = Rgb{paler(band.color.r), paler(band.color.g), paler(band.color.b)};
    figure.legend.push_back({"lowest to highest head", LegendEntry::Symbol::patch, band});
    figure.panels.push_back(std::move(panel));
    figure.caption = fmt::format(
        "Mean cosine similarity between pairs of the prompt's last {} queries, after RoPE. Curve: mean over "
        "query "
        "heads; band: lowest to highest head.",
        window);
    return figure;
}

Figure make(std::span<const TracePart> parts) {
    const bool curves = source_from_name(parts.front().options.source) == Source::mean_by_layer;
    if (!curves && parts.size() > 1)
        return joined_figure(make_figures_on_one_scale(parts, make_from_one_trace<make>), parts);
    Figure figure = curves ? make_curves(parts) : make_matrices(*parts.front().reader, parts.front().options);
    figure.name = "query-similarity";
    complete_figure(figure, parts, {});
    return figure;
}

Table matrix_numbers(const trace::Reader& reader, const FigureOptions& options) {
    const Choice choice = chosen(reader, options, Source::matrices);
    SubjectTable table("query-similarity", "Cosine similarity of each pair of window queries",
                       {SubjectKey::layer, SubjectKey::head, SubjectKey::token_a, SubjectKey::token_b,
                        Column{"cosine", "Cosine", "", ColumnType::real, 4}});
    const auto first = static_cast<int>(choice.n_tokens - choice.window);
    for (const int layer : choice.layers) {
        const std::vector<float> all = matrices(reader, options.prompt, layer);
        for (const int head : choice.heads) {
            const float* values = all.data() + static_cast<size_t>(head) * area(choice);
            SubjectPair of;
            of.a = of.b = {.layer = layer, .head = head, .query_heads = true};
            for (int a = 0; a < choice.window; ++a) {
                for (int b = 0; b < choice.window; ++b) {
                    of.a.token = first + a;
                    of.b.token = first + b;
                    table.add(of, {static_cast<double>(values[a * choice.window + b])});
                }
            }
        }
    }
    return table.take();
}

Table mean_numbers(const trace::Reader& reader, const FigureOptions& options) {
    const Choice choice = chosen(reader, options, Source::mean_by_layer);
    SubjectTable table(
        "query-similarity",
        "Mean cosine similarity of different window queries. A row without a head contains the mean over heads",
        {SubjectKey::layer, SubjectKey::head, Column{"mean_cosine", "Mean cosine", "", ColumnType::real, 4}});
    for (const int layer : choice.layers) {
        const std::vector<double> means = head_means(reader, options.prompt, layer, choice);
        table.add(Subject{.layer = layer}, {layer_means(means).mean});
        for (size_t i = 0; i < means.size(); ++i)
            table.add(Subject{.layer = layer, .head = choice.heads[i], .query_heads = true}, {means[i]});
    }
    return table.take();
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    const bool curve = source_from_name(options.source) == Source::mean_by_layer;
    return curve ? mean_numbers(reader, options) : matrix_numbers(reader, options);
}

}  // namespace

FigureDefinition query_similarity_figure() {
    return {
        "query-similarity",
        "Query similarity",
        "Cosine similarity of the window's queries: one map per layer and head, or a curve with the mean of each layer",
        {{"source",
          "matrices (default): one map per layer and head; mean-by-layer: mean over pairs of different queries",
          {"matrices", "mean-by-layer"}},
         {"layers", "default: four, evenly spaced; for mean-by-layer all"},
         {"heads", "query heads; default: at most nine, evenly spaced; for mean-by-layer all"}},
        check,
        make_from_one_trace<make>,
        numbers,
        "ApertureKV, Figures 4 and 6",
        make};
}

}  // namespace kvscope::analysis
