#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/measures/head_clustering.h"
#include "analysis/measures/kv_head_jsd.h"
#include "analysis/runs/missing_data.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace schema = trace::schema;

enum class Source { attention, kv_heads, scores };

/// A source with this suffix sorts the heads of each layer by similarity.
constexpr std::string_view ordered = "-by-similarity";

struct Matrices {
    Source source = Source::attention;
    bool by_similarity = false;
    std::string of;  ///< "attention of the last 32 queries, per query head"
    bool query_heads = false;
    size_t group = 1;      ///< stored heads per shown head; above 1 with FigureOptions::common_unit
    std::vector<int> run;  ///< run whose scores are compared; empty for attention
    Place place;           ///< location of the data set `stored`
    const schema::DataSet* stored = nullptr;
    size_t n = 0;  ///< number of heads
    std::vector<int> layers;
    std::vector<std::vector<float>> values;  ///< matrix (n, n) of each layer, in nats
    std::vector<std::vector<int>> heads;     ///< head at each of the n positions, for each layer
};

Source source_from_name(std::string_view name) {
    if (name.empty() || name == "attention") return Source::attention;
    if (name == "kv-heads" || name == "kv_heads") return Source::kv_heads;
    if (name == "scores") return Source::scores;
    throw FigureError(
        fmt::format("the figure jsd has no source '{}'; it has attention, kv-heads, scores, each also with the "
                    "suffix -by-similarity",
                    name));
}

std::vector<int> scored_runs(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<int> scored = chosen_runs(reader, options);
    std::erase_if(scored, [&](int j) { return !reader.has(Place::of_run(options.prompt, j), schema::run::head_jsd); });
    return scored;
}

int scored_run(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<int> chosen = chosen_runs(reader, options);
    const std::vector<int> scored = scored_runs(reader, options);
    if (scored.empty()) {
        throw NothingToShow(
            fmt::format("{}: no chosen run records a JSD of its scores (aperturekv does); the sources attention and "
                        "kv-heads show the JSD of the attention",
                        reader.path().string()));
    }
    if (!options.runs.empty() && chosen.size() > 1) {
        throw FigureError(fmt::format("the source scores shows one run at a time, but {} were chosen", chosen.size()));
    }
    return scored.front();
}

/// Returns the matrices with all fields except `values` and `heads`.
Matrices described(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    Matrices m;
    std::string_view source = options.source;
    m.by_similarity = source.ends_with(ordered);
    if (m.by_similarity) source.remove_suffix(ordered.size());
    m.source = source_from_name(source);
    m.layers = chosen_layers(reader, options);
    const trace::ModelAttributes& model = reader.model();
    const trace::PromptAttributes& prompt = reader.prompt(options.prompt);
    m.place = Place::of_prompt(options.prompt);
    m.stored = &schema::prompt::head_jsd;
    switch (m.source) {
        case Source::attention:
            m.n = static_cast<size_t>(model.n_heads);
            m.of = fmt::format("attention of the last {} queries, per query head", prompt.window);
            m.query_heads = true;
            break;
        case Source::kv_heads:
            m.n = static_cast<size_t>(model.n_kv_heads);
            m.of = fmt::format("attention of the last {} queries, averaged per KV head", prompt.window);
            m.stored = &schema::prompt::window_attention;
            break;
        case Source::scores: {
            const int run = scored_run(reader, options);
            const trace::RunAttributes& attributes = reader.run(options.prompt, run);
            m.place = Place::of_run(options.prompt, run);
            m.run = {run};
            m.n = reader.n_rows(options.prompt, run);
            m.of = fmt::format("scores of {}", run_label(attributes));
            m.query_heads = attributes.granularity == schema::run::granularity_query_head;
            m.stored = &schema::run::head_jsd;
            break;
        }
    }
    if (options.common_unit && m.query_heads) {
        m.group = static_cast<size_t>(model.n_heads / model.n_kv_heads);
        m.n /= m.group;
        m.query_heads = false;
    }
    require_data(reader, m.place, *m.stored);
    if (m.source == Source::kv_heads && prompt.visible_tokens() <= prompt.window) {
        throw NothingToShow(fmt::format("{}: prompt {} has {} tokens, no more than its window of {}",
                                        reader.path().string(), options.prompt, prompt.visible_tokens(),
                                        prompt.window));
    }
    return m;
}

void check(const trace::Reader& reader, const FigureOptions& options) { described(reader, options); }

std::string own_choice(const trace::Reader& reader, const FigureOptions& options) {
    const Matrices m = described(reader, options);
    if (m.source != Source::scores || !options.runs.empty()) return "";
    const size_t n = scored_runs(reader, options).size();
    if (n < 2) return "";
    return fmt::format("only {}, the first of {} runs that record a JSD of their scores",
                       run_label(reader.run(options.prompt, m.run.front())), n);
}

/// Averages the values of pairs of query heads for each pair of KV heads (n, n). The diagonal is 0.
std::vector<float> mean_of_groups(std::vector<float> values, size_t n, size_t group) {
    if (group == 1) return values;
    std::vector<float> means(n * n, 0.0f);
    for (size_t a = 0; a < n * group; ++a)
        for (size_t b = 0; b < n * group; ++b)
            if (a / group != b / group)
                means[a / group * n + b / group] += values[a * n * group + b] / static_cast<float>(group * group);
    return means;
}

Matrices read_matrices(const trace::Reader& reader, const FigureOptions& options) {
    Matrices m = described(reader, options);
    const auto n_heads = static_cast<size_t>(reader.model().n_heads);
    const auto window = static_cast<size_t>(reader.prompt(options.prompt).window);
    for (const int layer : m.layers) {
        const auto l = static_cast<size_t>(layer);
        if (m.source == Source::kv_heads) {
            m.values.push_back(kv_head_jsd(reader.window_attention(options.prompt, l), n_heads, m.n, window));
        } else {
            m.values.push_back(mean_of_groups(reader.read_layer<float>(m.place, *m.stored, l), m.n, m.group));
        }
        auto& heads = m.heads.emplace_back(m.n);
        std::iota(heads.begin(), heads.end(), 0);
        if (!m.by_similarity) continue;
        const auto order = order_heads_by_similarity(m.values.back(), m.n);
        std::transform(order.begin(), order.end(), heads.begin(), [](size_t head) { return static_cast<int>(head); });
    }
    return m;
}

float value_of(const Matrices& m, size_t layer, int a, int b) {
    return m.values[layer][static_cast<size_t>(a) * m.n + static_cast<size_t>(b)];
}

std::vector<Tick> named_places(const std::vector<int>& heads) {
    std::vector<Tick> ticks;
    for (size_t i = 0; i < heads.size(); ++i) ticks.push_back({static_cast<double>(i), std::to_string(heads[i])});
    return ticks;
}

double largest(const Matrices& m) {
    double value = 0;
    for (const auto& matrix : m.values) {
        for (const float v : matrix) {
            if (std::isfinite(v)) value = std::max(value, static_cast<double>(v));
        }
    }
    return value;
}

constexpr size_t most_with_labels = 6;  // largest number of columns in which each head has a label

size_t columns_for(size_t n) {
    if (n <= 5) return n;
    for (const size_t columns : {size_t{8}, size_t{10}, size_t{9}, size_t{7}, size_t{6}, size_t{5}}) {
        if (n % columns == 0) return columns;
    }
    return n < 8 ? n : 8;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const Matrices m = read_matrices(reader, options);
    Figure figure;
    figure.name = "jsd";
    figure.title = fmt::format("Jensen-Shannon divergence between heads: {}", m.of);
    figure.columns = m.by_similarity ? std::min(m.layers.size(), most_with_labels) : columns_for(m.layers.size());
    figure.rows = (m.layers.size() + figure.columns - 1) / figure.columns;
    figure.shared_x = figure.shared_y = !m.by_similarity;
    figure.width_mm = m.layers.size() <= 2 ? 84 : 174;
    if (m.layers.size() <= 2) figure.panel_height_mm = 50;

    ColorScale scale;
    scale.title = options.common_unit ? "JSD between KV heads" : "JSD";
    scale.of = m.of;
    scale.unit = "nats";
    scale.min = 0;
    scale.max = largest(m);
    if (scale.max <= 0) scale.max = std::log(2.0);
    std::swap(scale.map_begin, scale.map_end);  // heads that are alike are dark, as in query-similarity
    figure.color_scales.push_back(scale);

    for (size_t i = 0; i < m.layers.size(); ++i) {
        Panel panel;
        panel.row = i / figure.columns;
        panel.column = i % figure.columns;
        panel.title = fmt::format("Layer {}", m.layers[i]);
        panel.subject.layer = m.layers[i];
        if (!m.run.empty()) panel.subject.run = m.run.front();
        panel.square_cells = true;
        panel.x = head_axis(m.heads[i], m.query_heads);
        if (m.by_similarity) panel.x.ticks = named_places(m.heads[i]);
        panel.y = panel.x;
        if (m.by_similarity && panel.row + 1 < figure.rows) panel.x.title.clear();
        if (m.by_similarity && panel.column > 0) panel.y.title.clear();
        panel.y.reversed = true;
        HeatMap map;
        set_map_extent(map, m.n, m.n);
        for (const int a : m.heads[i]) {
            for (const int b : m.heads[i]) map.values.push_back(value_of(m, i, a, b));
        }
        map.reduction = Reduction::mean;
        panel.shapes.emplace_back(std::move(map));
        figure.panels.push_back(std::move(panel));
    }
    figure.caption = fmt::format(
        "Jensen-Shannon divergence between each pair of heads of a layer ({}); 0 for equal distributions.{}", m.of,
        m.by_similarity ? " The heads of each layer are sorted by similarity (average linkage)." : "");
    if (options.common_unit)
        figure.caption +=
            " For query heads, the value of two KV heads is the mean over all pairs of their query heads.";
    complete_figure(figure, reader, options, m.run);
    return figure;
}

std::vector<int> shown_runs(const trace::Reader& reader, const FigureOptions& options) {
    return described(reader, options).run;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    const Matrices m = read_matrices(reader, options);
    std::vector<std::variant<SubjectKey, Column>> columns = {Column{"source", "Source", "", ColumnType::text},
                                                             SubjectKey::layer, SubjectKey::head_a, SubjectKey::head_b,
                                                             Column{"jsd_nats", "JSD", "nats", ColumnType::real, 4}};
    if (!m.run.empty()) columns.insert(columns.begin(), SubjectKey::run);
    SubjectTable table("jsd", fmt::format("Jensen-Shannon divergence in nats, {}", m.of), std::move(columns));
    const int run = m.run.empty() ? -1 : m.run.front();
    for (size_t i = 0; i < m.layers.size(); ++i) {
        for (const int a : m.heads[i]) {
            for (const int b : m.heads[i]) {
                table.add(
                    {{.run = run, .layer = m.layers[i], .head = a}, {.run = run, .layer = m.layers[i], .head = b}},
                    {m.of, static_cast<double>(value_of(m, i, a, b))});
            }
        }
    }
    return table.take();
}

}  // namespace

FigureDefinition jsd_figure() {
    FigureDefinition definition{
        "jsd",
        "Head divergence",
        "Jensen-Shannon divergence between the heads of each layer, one map per layer, 0 for equal heads",
        {{"layers", "default: all"},
         {"source",
          "attention (default): attention of query heads; kv-heads: attention averaged per KV head; scores: scores of "
          "a "
          "run; the suffix -by-similarity sorts the heads of each layer by similarity",
          {"attention", "kv-heads", "scores", "attention-by-similarity", "kv-heads-by-similarity",
           "scores-by-similarity"}},
         {"runs",
          "with source scores: the run whose scores are compared; default: the first",
          {},
          {"scores", "scores-by-similarity"}}},
        check,
        make,
        numbers,
        "ApertureKV, Figure 5",
        nullptr,
        nullptr,
        nullptr,
        own_choice};
    definition.shown_runs = shown_runs;
    return definition;
}

}  // namespace kvscope::analysis
