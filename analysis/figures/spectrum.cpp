#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/color_map.h"
#include "analysis/figure_definition.h"
#include "analysis/layer_axis.h"
#include "analysis/run_choice.h"
#include "trace/fields.h"
#include "trace/kept_spectra.h"

namespace kvscope::analysis::spectrum_file {
namespace {

using trace::Place;
namespace schema = trace::schema;

constexpr int kLayersShown = 6;
constexpr double kNothing = 1e-9;    // of the largest eigenvalue: below it is rounding, as of a matrix of lower rank
constexpr double kWhole = 1 - 1e-4;  // of the sum: what follows is not worth its paper

enum class Source { eigenvalues, cumulative, adjacent };

Source source_from_name(const std::string& name) {
    if (name.empty() || name == "eigenvalues") return Source::eigenvalues;
    if (name == "cumulative") return Source::cumulative;
    if (name == "adjacent") return Source::adjacent;
    throw FigureError(
        fmt::format("there is no source '{}' of spectra; there are eigenvalues, cumulative, adjacent", name));
}

/// Without those in the trace, what is kept of its model in the cache folder. @throws NothingToShow where neither is
void require_spectra(const trace::Reader& reader, const schema::DataSet& data_set) {
    if (reader.has_model() && !reader.has(Place::of_model(), data_set) && trace::has_kept_spectra(reader.model()))
        return;
    require_data(reader, Place::of_model(), data_set);
}

/// A trace of the model alone has spectra, too.
void check_subject(const trace::Reader& reader, const FigureOptions& options, Source source) {
    if (source == Source::adjacent || options.prompt != 0 || reader.n_prompts() > 0) {
        check_prompt(reader, options.prompt);
    } else {
        require_spectra(reader, schema::model::spectrum_q);
    }
}

struct Projection {
    const char* name;
    const schema::DataSet& whole;
    const schema::DataSet& of_heads;
    const schema::DataSet& adjacent;
    bool kv_heads;
};

std::array<Projection, 3> projections() {
    return {
        {{"Q", schema::model::spectrum_q, schema::model::head_spectrum_q, schema::prompt::adjacent_similarity_q, false},
         {"K", schema::model::spectrum_k, schema::model::head_spectrum_k, schema::prompt::adjacent_similarity_k, true},
         {"V", schema::model::spectrum_v, schema::model::head_spectrum_v, schema::prompt::adjacent_similarity_v,
          true}}};
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    const Source source = source_from_name(options.source);
    check_subject(reader, options, source);
    chosen_layers(reader, options);
    const bool of_heads = !chosen_heads(reader, options).empty();
    for (const Projection& projection : projections()) {
        if (source == Source::adjacent)
            require_data(reader, Place::of_prompt(options.prompt), projection.adjacent);
        else
            require_spectra(reader, of_heads ? projection.of_heads : projection.whole);
    }
}

/// One spectrum: of a layer, or of one head of it.
struct Spectrum {
    int layer = 0;
    int head = -1;  ///< of the projection (K and V: KV heads); -1: the whole matrix
    std::vector<double> values;
};

/// The projection's head that a query head uses.
int head_used(const Projection& projection, const trace::ModelAttributes& model, int query_head) {
    return projection.kv_heads ? query_head / static_cast<int>(model.n_heads / model.n_kv_heads) : query_head;
}

/// Heads of the projection that the chosen query heads use.
std::vector<int> heads_of(const Projection& projection, const trace::ModelAttributes& model,
                          const std::vector<int>& query_heads) {
    std::set<int> heads;
    for (const int head : query_heads) heads.insert(head_used(projection, model, head));
    return {heads.begin(), heads.end()};
}

/// A projection's eigenvalues, of the trace or kept, layer by layer.
class Eigenvalues {
 public:
    /// @throws NothingToShow where there are none
    Eigenvalues(const trace::Reader& reader, const schema::DataSet& data_set) : reader_(reader), data_set_(data_set) {
        require_spectra(reader, data_set);
        trace::ModelRecord record;
        if (reader.has(Place::of_model(), data_set) || !trace::read_kept_spectra(reader.model(), record)) return;
        trace::for_each_model_data_set(record, [&](const schema::DataSet& member, std::vector<float>& values) {
            if (member.path == data_set.path) kept_ = std::move(values);
        });
    }

    std::vector<float> of_layer(int layer) const {
        if (kept_.empty()) return reader_.read_layer<float>(Place::of_model(), data_set_, static_cast<size_t>(layer));
        const size_t n = kept_.size() / static_cast<size_t>(reader_.model().n_layers);
        const auto first = kept_.begin() + static_cast<std::ptrdiff_t>(n * static_cast<size_t>(layer));
        return {first, first + static_cast<std::ptrdiff_t>(n)};
    }

 private:
    const trace::Reader& reader_;
    const schema::DataSet& data_set_;
    std::vector<float> kept_;
};

/// The dash of the i-th of the chosen query heads.
Dash head_dash(size_t i) {
    constexpr std::array<Dash, 4> dashes = {Dash::solid, Dash::dashed, Dash::dotted, Dash::dash_dotted};
    return dashes[i % dashes.size()];
}

/// Of ascending rank, divided as the source wants it.
std::vector<double> as_drawn(const std::vector<float>& eigenvalues, size_t first, size_t count, Source source) {
    const auto begin = eigenvalues.begin() + static_cast<std::ptrdiff_t>(first);
    std::vector<double> values(begin, begin + static_cast<std::ptrdiff_t>(count));
    if (source != Source::cumulative) return values;
    double total = 0, sum = 0;
    for (const double value : values) total += std::max(value, 0.0);
    for (double& value : values) {
        sum += std::max(value, 0.0);
        value = total > 0 ? sum / total : std::numeric_limits<double>::quiet_NaN();
    }
    return values;
}

std::vector<int> shown_layers(const trace::Reader& reader, const FigureOptions& options, bool all) {
    const auto n_layers = static_cast<int>(reader.model().n_layers);
    return options.layers.empty() && !all ? evenly_spaced(n_layers, kLayersShown) : chosen_layers(reader, options);
}

std::vector<Spectrum> read_spectra(const trace::Reader& reader, const FigureOptions& options,
                                   const Projection& projection, Source source) {
    const std::vector<int> query_heads = chosen_heads(reader, options);
    const schema::DataSet& data_set = query_heads.empty() ? projection.whole : projection.of_heads;
    const Eigenvalues eigenvalues(reader, data_set);
    std::vector<Spectrum> spectra;
    for (const int layer : shown_layers(reader, options, false)) {
        const auto values = eigenvalues.of_layer(layer);
        if (query_heads.empty()) {
            spectra.push_back({layer, -1, as_drawn(values, 0, values.size(), source)});
            continue;
        }
        const auto d = static_cast<size_t>(reader.model().head_dim);
        for (const int head : heads_of(projection, reader.model(), query_heads)) {
            spectra.push_back({layer, head, as_drawn(values, static_cast<size_t>(head) * d, d, source)});
        }
    }
    return spectra;
}

/// Dark for the first layer, lighter for later ones, none too pale for paper.
Rgb layer_color(size_t i, size_t n) {
    return color_at(ColorMap::viridis, n < 2 ? 0.0 : 0.85 * static_cast<double>(i) / static_cast<double>(n - 1));
}

Axis eigenvalue_axis(double smallest, double largest) {
    Axis axis;
    axis.title = "Eigenvalue of WᵀW";
    axis.scale = Scale::logarithmic;
    axis.min = std::pow(10, std::floor(std::log10(smallest)));
    axis.max = std::pow(10, std::ceil(std::log10(largest) + 1e-9));
    return axis;
}

Axis share_axis() {
    Axis axis;
    axis.title = "Cumulative share";
    axis.unit = "%";
    axis.min = 0;
    axis.max = 102;
    for (const int tick : {0, 25, 50, 75, 100}) axis.ticks.push_back({static_cast<double>(tick), std::to_string(tick)});
    return axis;
}

Figure make_spectra(const trace::Reader& reader, const FigureOptions& options, Source source) {
    Figure figure;
    figure.width_mm = 174;
    figure.panel_height_mm = 48;
    const bool narrow = is_narrow(options);
    (narrow ? figure.rows : figure.columns) = 3;
    figure.shared_y = !narrow;
    const std::vector<int> layers = shown_layers(reader, options, false);
    const std::vector<int> query_heads = chosen_heads(reader, options);
    double smallest = std::numeric_limits<double>::infinity(), largest = 0;
    for (const Projection& projection : projections()) {
        Panel panel;
        (narrow ? panel.row : panel.column) = figure.panels.size();
        panel.title = projection.name;
        size_t last = 1;  // rank that is drawn
        for (const Spectrum& spectrum : read_spectra(reader, options, projection, source)) {
            const auto at =
                static_cast<size_t>(std::find(layers.begin(), layers.end(), spectrum.layer) - layers.begin());
            Line line;
            line.label = fmt::format("layer {}", spectrum.layer);
            line.style.color = layer_color(at, layers.size());
            line.style.width_pt = 0.8;
            const auto reads_it = [&](int head) {
                return head_used(projection, reader.model(), head) == spectrum.head;
            };
            if (spectrum.head >= 0) {
                const auto reader_of_it = std::find_if(query_heads.begin(), query_heads.end(), reads_it);
                line.style.dash = head_dash(static_cast<size_t>(reader_of_it - query_heads.begin()));
            }
            const double least = kNothing * (spectrum.values.empty() ? 0.0 : spectrum.values.front());
            for (size_t i = 0; i < spectrum.values.size(); ++i) {
                double value = spectrum.values[i];
                if (source == Source::cumulative) {
                    if (value < kWhole) last = std::max(last, i + 2);
                    value *= 100;
                } else if (!(value > least)) {
                    value = std::numeric_limits<double>::quiet_NaN();
                } else {
                    last = std::max(last, i + 1);
                    smallest = std::min(smallest, value);
                    largest = std::max(largest, value);
                }
                line.x.push_back(static_cast<double>(i + 1));
                line.y.push_back(value);
            }
            panel.layers.emplace_back(std::move(line));
        }
        panel.x.max = static_cast<double>(last) + 1;
        figure.panels.push_back(std::move(panel));
    }
    if (!(largest > 0)) smallest = largest = 1;
    for (Panel& panel : figure.panels) {
        panel.x.title = "Rank";
        panel.x.min = 0;
        panel.x.whole_numbers = true;
        panel.y = source == Source::cumulative ? share_axis() : eigenvalue_axis(smallest, largest);
    }
    for (size_t i = 0; i < layers.size(); ++i) {
        LineStyle style{layer_color(i, layers.size())};
        figure.legend.push_back({fmt::format("layer {}", layers[i]), LegendEntry::Symbol::line, style});
    }
    const std::string of =
        options.heads.empty() ? "projection" : "chosen head's projection (K, V: the KV head it reads)";
    figure.title =
        source == Source::cumulative ? "Cumulative spectrum of the projections" : "Spectrum of the projections";
    figure.caption =
        source == Source::cumulative
            ? fmt::format("Share of the sum of eigenvalues of WᵀW that the first ones hold, of each {}.", of)
            : fmt::format(
                  "Eigenvalues of WᵀW of each {}, descending; those below 10⁻⁹ of the largest, which "
                  "a matrix of lower rank leaves, are not drawn.",
                  of);
    return figure;
}

Figure make_adjacent(const trace::Reader& reader, const FigureOptions& options) {
    Figure figure;
    figure.title = "Cosine similarity of neighbouring tokens";
    const std::vector<int> layers = shown_layers(reader, options, true);
    Panel panel;
    panel.x = layer_axis(layers);
    panel.y.title = "Mean cosine of neighbours";
    double smallest = 0, largest = 0;
    size_t i_style = 0;
    constexpr std::array<size_t, 3> colors = {4, 3, 2};  // blue, vermillion, green
    constexpr std::array<Marker, 3> markers = {Marker::circle, Marker::square, Marker::triangle};
    for (const Projection& projection : projections()) {
        require_data(reader, Place::of_prompt(options.prompt), projection.adjacent);
        const auto values = reader.read<float>(Place::of_prompt(options.prompt), projection.adjacent);
        Line line;
        line.label = projection.name;
        line.style.color = okabe_ito()[colors[i_style]];
        line.style.marker = markers[i_style];
        for (size_t i = 0; i < layers.size(); ++i) {
            line.x.push_back(static_cast<double>(i));
            line.y.push_back(static_cast<double>(values[static_cast<size_t>(layers[i])]));
            if (!std::isfinite(line.y.back())) continue;
            smallest = std::min(smallest, line.y.back());
            largest = std::max(largest, line.y.back());
        }
        figure.legend.push_back({projection.name, LegendEntry::Symbol::line, line.style});
        panel.layers.emplace_back(std::move(line));
        ++i_style;
    }
    panel.y.min = smallest < 0 ? smallest * 1.08 : 0;
    panel.y.max = std::max(largest * 1.08, 1e-3);
    figure.panels.push_back(std::move(panel));
    figure.caption = "Mean cosine similarity of neighbouring tokens' queries, keys and values before RoPE, by layer.";
    return figure;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const Source source = source_from_name(options.source);
    check_subject(reader, options, source);
    Figure figure = source == Source::adjacent ? make_adjacent(reader, options) : make_spectra(reader, options, source);
    figure.name = "spectrum";
    complete_figure(figure, reader, options, {});
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    const Source source = source_from_name(options.source);
    check_subject(reader, options, source);
    Table table;
    table.name = "spectrum";
    table.columns = {{"projection", "Projection", "", ColumnType::text}, {"layer", "Layer", "", ColumnType::integer}};
    if (source == Source::adjacent) {
        table.title = "Mean cosine similarity of neighbouring tokens";
        table.columns.push_back({"mean_cosine", "Mean cosine", "", ColumnType::real, 4});
        for (const Projection& projection : projections()) {
            require_data(reader, Place::of_prompt(options.prompt), projection.adjacent);
            const auto values = reader.read<float>(Place::of_prompt(options.prompt), projection.adjacent);
            for (const int layer : shown_layers(reader, options, true)) {
                table.rows.push_back({{std::string(projection.name), int64_t{layer},
                                       static_cast<double>(values[static_cast<size_t>(layer)])}});
            }
        }
        return table;
    }
    const bool cumulative = source == Source::cumulative;
    table.title = cumulative ? "Cumulative share of the eigenvalues of WᵀW" : "Eigenvalues of WᵀW";
    table.columns.push_back({"head", "Head", "", ColumnType::integer});
    table.columns.push_back({"rank", "Rank", "", ColumnType::integer});
    table.columns.push_back(cumulative ? Column{"cumulative_share", "Cumulative share", "", ColumnType::real, 4}
                                       : Column{"eigenvalue", "Eigenvalue", "", ColumnType::real, 4});
    for (const Projection& projection : projections()) {
        for (const Spectrum& spectrum : read_spectra(reader, options, projection, source)) {
            for (size_t i = 0; i < spectrum.values.size(); ++i) {
                table.rows.push_back({{std::string(projection.name), int64_t{spectrum.layer},
                                       spectrum.head < 0 ? Cell() : Cell(int64_t{spectrum.head}),
                                       static_cast<int64_t>(i + 1), spectrum.values[i]}});
            }
        }
    }
    return table;
}

}  // namespace
}  // namespace kvscope::analysis::spectrum_file

namespace kvscope::analysis {

FigureDefinition spectrum_figure() {
    using namespace spectrum_file;
    return {"spectrum",
            "Spectrum",
            "Eigenvalues of the Q, K and V projections by layer, their cumulative share, or the similarity of "
            "neighbouring tokens",
            {{"source",
              "eigenvalues (default); cumulative: share of their sum; adjacent: cosine of neighbouring tokens by layer",
              {"eigenvalues", "cumulative", "adjacent"}},
             {"layers", "default: six, evenly spaced; of adjacent all"},
             {"heads",
              "query heads whose own projections are shown, with the KV heads they read; default: whole layers",
              {},
              {"eigenvalues", "cumulative"}}},
            check,
            make,
            numbers,
            "KVSlimmer, Figures 2, 8 and 9"};
}

}  // namespace kvscope::analysis
