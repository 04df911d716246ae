#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/gradient_alignment_scatter.h"
#include "analysis/kv_similarity_maps.h"
#include "analysis/runs/missing_data.h"
#include "analysis/runs/run_choice.h"
#include "trace/records/record_fields.h"
#include "trace/spectra_cache.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace schema = trace::schema;

constexpr int n_layers_shown = 6;
constexpr double least_relative_eigenvalue =
    1e-9;                                 // relative to the largest eigenvalue; smaller eigenvalues are rounding errors
constexpr double drawn_share = 1 - 1e-4;  // share of the eigenvalues' sum after which further ranks are not drawn

enum class Source { eigenvalues, cumulative, adjacent, contribution, layer_similarity, head_similarity, alignment };

constexpr std::array<const char*, 7> source_names = {"eigenvalues",      "cumulative",      "adjacent", "contribution",
                                                     "layer-similarity", "head-similarity", "alignment"};

Source source_from_name(const std::string& name) {
    if (name.empty()) return Source::eigenvalues;
    for (size_t i = 0; i < source_names.size(); ++i)
        if (name == source_names[i]) return static_cast<Source>(i);
    throw FigureError(
        fmt::format("the figure spectrum has no source '{}'; it has {}", name, fmt::join(source_names, ", ")));
}

bool can_inspect_as_model(Source source) { return source == Source::eigenvalues || source == Source::cumulative; }

void require_spectra(const trace::Reader& reader, const schema::DataSet& data_set) {
    if (reader.has_model() && !reader.has(Place::of_model(), data_set) && trace::has_cached_spectra(reader.model()))
        return;
    require_data(reader, Place::of_model(), data_set);
}

/// Checks that the prompt exists. For a figure of the model, a trace without prompts needs only the spectra.
void check_subject(const trace::Reader& reader, const FigureOptions& options, Source source) {
    if (!can_inspect_as_model(source) || options.prompt != 0 || reader.n_prompts() > 0) {
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
    const schema::DataSet& contribution;
    bool kv_heads;
};

std::array<Projection, 3> projections() {
    namespace model = schema::model;
    namespace prompt = schema::prompt;
    return {{{"Q", model::spectrum_q, model::head_spectrum_q, prompt::adjacent_similarity_q,
              prompt::mode_contribution_q, false},
             {"K", model::spectrum_k, model::head_spectrum_k, prompt::adjacent_similarity_k,
              prompt::mode_contribution_k, true},
             {"V", model::spectrum_v, model::head_spectrum_v, prompt::adjacent_similarity_v,
              prompt::mode_contribution_v, true}}};
}

std::vector<int> shown_layers(const trace::Reader& reader, const FigureOptions& options, bool all) {
    const auto n_layers = static_cast<int>(reader.model().n_layers);
    return options.layers.empty() && !all ? evenly_spaced(n_layers, n_layers_shown) : chosen_layers(reader, options);
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    const Source source = source_from_name(options.source);
    check_subject(reader, options, source);
    chosen_layers(reader, options);
    const bool of_heads = !chosen_heads(reader, options).empty();
    if (source == Source::layer_similarity) layer_similarity_numbers(reader, options);
    if (source == Source::head_similarity)
        head_similarity_numbers(reader, options, shown_layers(reader, options, false));
    if (source == Source::alignment) alignment_numbers(reader, options, shown_layers(reader, options, false));
    for (const Projection& projection : projections()) {
        if (can_inspect_as_model(source))
            require_spectra(reader, of_heads ? projection.of_heads : projection.whole);
        else if (source == Source::adjacent || source == Source::contribution)
            require_data(reader, Place::of_prompt(options.prompt),
                         source == Source::adjacent ? projection.adjacent : projection.contribution);
    }
}

struct Spectrum {
    int layer = 0;
    int head = -1;  ///< head of the projection (KV head for K and V); −1: the whole matrix, or the mean over heads
    std::vector<double> values;

    Subject subject(const Projection& projection) const {
        return {.layer = layer, .head = head, .query_heads = !projection.kv_heads};
    }
};

int head_used(const Projection& projection, const trace::ModelAttributes& model, int query_head) {
    return projection.kv_heads ? query_head / static_cast<int>(model.n_heads / model.n_kv_heads) : query_head;
}

std::vector<int> heads_of(const Projection& projection, const trace::ModelAttributes& model,
                          const std::vector<int>& query_heads) {
    std::set<int> heads;
    for (const int head : query_heads) heads.insert(head_used(projection, model, head));
    return {heads.begin(), heads.end()};
}

/// Eigenvalues of a projection by layer, from the trace or the cache folder.
class Eigenvalues {
 public:
    /// @throws NothingToShow if neither the trace nor the cache folder has the eigenvalues
    Eigenvalues(const trace::Reader& reader, const schema::DataSet& data_set) : reader_(reader), data_set_(data_set) {
        require_spectra(reader, data_set);
        trace::ModelRecord record;
        if (reader.has(Place::of_model(), data_set) || !trace::read_cached_spectra(reader.model(), record)) return;
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

Dash head_dash(size_t i) {
    constexpr std::array<Dash, 4> dashes = {Dash::solid, Dash::dashed, Dash::dotted, Dash::dash_dotted};
    return dashes[i % dashes.size()];
}

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

std::vector<Spectrum> read_contributions(const trace::Reader& reader, const FigureOptions& options,
                                         const Projection& projection) {
    const Place place = Place::of_prompt(options.prompt);
    require_data(reader, place, projection.contribution);
    const std::vector<int> query_heads = chosen_heads(reader, options);
    const auto d = static_cast<size_t>(reader.model().head_dim);
    std::vector<Spectrum> spectra;
    for (const int layer : shown_layers(reader, options, false)) {
        const auto all = reader.read_layer<float>(place, projection.contribution, static_cast<size_t>(layer));
        for (const int head : heads_of(projection, reader.model(), query_heads)) {
            const auto first = all.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(head) * d);
            spectra.push_back({layer, head, {first, first + static_cast<std::ptrdiff_t>(d)}});
        }
        if (!query_heads.empty()) continue;
        std::vector<double> means(d, 0.0);
        for (size_t i = 0; i < all.size(); ++i)
            means[i % d] += static_cast<double>(all[i]) * static_cast<double>(d) / static_cast<double>(all.size());
        spectra.push_back({layer, -1, std::move(means)});
    }
    return spectra;
}

std::vector<Spectrum> read_spectra(const trace::Reader& reader, const FigureOptions& options,
                                   const Projection& projection, Source source) {
    if (source == Source::contribution) return read_contributions(reader, options, projection);
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

Axis contribution_axis(double smallest, double largest) {
    Axis axis;
    axis.title = "Contribution to the cosine";
    const double span = std::max(largest - std::min(smallest, 0.0), 1e-6);
    axis.min = smallest < 0 ? smallest - 0.06 * span : 0;
    axis.max = std::max(largest, 0.0) + 0.06 * span;
    return axis;
}

struct Reach {
    double smallest = std::numeric_limits<double>::infinity();
    double largest = -std::numeric_limits<double>::infinity();

    void take(double value) {
        smallest = std::min(smallest, value);
        largest = std::max(largest, value);
    }
};

/// Returns the curve of a spectrum by rank. Increases `last` if this curve needs a higher last rank.
Line line_of(const Spectrum& spectrum, const Projection& projection, Source source, Reach& reach, size_t& last) {
    Line line;
    line.label = fmt::format("layer {}", spectrum.layer);
    line.subject = spectrum.subject(projection);
    line.style.width_pt = 0.8;
    const double least = least_relative_eigenvalue * (spectrum.values.empty() ? 0.0 : spectrum.values.front());
    for (size_t i = 0; i < spectrum.values.size(); ++i) {
        double value = spectrum.values[i];
        if (source == Source::cumulative) {
            if (value < drawn_share) last = std::max(last, i + 2);
            value *= 100;
        } else if (source == Source::eigenvalues && !(value > least)) {
            value = std::numeric_limits<double>::quiet_NaN();
        } else if (std::isfinite(value)) {
            last = std::max(last, i + 1);
            reach.take(value);
        }
        line.x.push_back(static_cast<double>(i + 1));
        line.y.push_back(value);
    }
    return line;
}

void describe(Figure& figure, Source source, bool of_heads) {
    const std::string of = of_heads ? "chosen head's projection (K, V: the KV head that it uses)" : "projection";
    if (source == Source::contribution) {
        figure.title = "Contribution of the projections' modes to the similarity of adjacent tokens";
        figure.caption = fmt::format(
            "Contribution of each mode of {} to the mean cosine of adjacent tokens (KVSlimmer, Eq. 8). The values of a "
            "curve sum to this cosine. Modes are ordered by descending eigenvalue of WᵀW.",
            of_heads ? "the " + of : "a head's projection, averaged over heads,");
    } else if (source == Source::cumulative) {
        figure.title = "Cumulative spectrum of the projections";
        figure.caption = fmt::format("Cumulative eigenvalues of WᵀW as a share of their sum, for each {}.", of);
    } else {
        figure.title = "Spectrum of the projections";
        figure.caption = fmt::format(
            "Eigenvalues of WᵀW for each {}, in descending order. Eigenvalues below 10⁻⁹ of the largest, which are "
            "rounding errors of a low-rank matrix, are not drawn.",
            of);
    }
}

Figure make_spectra(const trace::Reader& reader, const FigureOptions& options, Source source) {
    Figure figure;
    figure.width_mm = 174;
    figure.panel_height_mm = 48;
    const bool narrow = is_narrow_figure(options);
    (narrow ? figure.rows : figure.columns) = 3;
    figure.shared_y = !narrow;
    const std::vector<int> layers = shown_layers(reader, options, false);
    const std::vector<int> query_heads = chosen_heads(reader, options);
    Reach reach;
    for (const Projection& projection : projections()) {
        Panel panel;
        (narrow ? panel.row : panel.column) = figure.panels.size();
        panel.title = projection.name;
        size_t last = 1;  // last drawn rank
        for (const Spectrum& spectrum : read_spectra(reader, options, projection, source)) {
            const auto at =
                static_cast<size_t>(std::find(layers.begin(), layers.end(), spectrum.layer) - layers.begin());
            Line line = line_of(spectrum, projection, source, reach, last);
            line.style.color = layer_color(at, layers.size());
            const auto reads_it = [&](int head) {
                return head_used(projection, reader.model(), head) == spectrum.head;
            };
            if (spectrum.head >= 0) {
                const auto reader_of_it = std::find_if(query_heads.begin(), query_heads.end(), reads_it);
                line.style.dash = head_dash(static_cast<size_t>(reader_of_it - query_heads.begin()));
            }
            panel.shapes.emplace_back(std::move(line));
        }
        panel.x.max = static_cast<double>(last) + 1;
        figure.panels.push_back(std::move(panel));
    }
    if (!(reach.largest >= reach.smallest)) reach.smallest = reach.largest = 1;
    for (Panel& panel : figure.panels) {
        panel.x.title = source == Source::contribution ? "Mode" : "Rank";
        panel.x.min = 0;
        panel.x.whole_numbers = true;
        panel.y = source == Source::cumulative     ? share_axis()
                  : source == Source::contribution ? contribution_axis(reach.smallest, reach.largest)
                                                   : eigenvalue_axis(reach.smallest, reach.largest);
    }
    for (size_t i = 0; i < layers.size(); ++i) {
        LineStyle style{layer_color(i, layers.size())};
        figure.legend.push_back({fmt::format("layer {}", layers[i]), LegendEntry::Symbol::line, style});
    }
    describe(figure, source, !options.heads.empty());
    return figure;
}

Figure make_adjacent(const trace::Reader& reader, const FigureOptions& options) {
    Figure figure;
    figure.title = "Cosine similarity of adjacent tokens";
    const std::vector<int> layers = shown_layers(reader, options, true);
    Panel panel;
    panel.x = layer_axis(layers);
    panel.y.title = "Mean cosine of adjacent tokens";
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
        panel.shapes.emplace_back(std::move(line));
        ++i_style;
    }
    panel.y.min = smallest < 0 ? smallest * 1.08 : 0;
    panel.y.max = std::max(largest * 1.08, 1e-3);
    figure.panels.push_back(std::move(panel));
    figure.caption = "Mean cosine similarity of the queries, keys and values of adjacent tokens before RoPE, by layer.";
    return figure;
}

Figure make_source(const trace::Reader& reader, const FigureOptions& options, Source source) {
    switch (source) {
        case Source::adjacent:
            return make_adjacent(reader, options);
        case Source::layer_similarity:
            return make_layer_similarity(reader, options);
        case Source::head_similarity:
            return make_head_similarity_figure(reader, options, shown_layers(reader, options, false));
        case Source::alignment:
            return make_gradient_alignment_figure(reader, options, shown_layers(reader, options, false));
        default:
            return make_spectra(reader, options, source);
    }
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const Source source = source_from_name(options.source);
    check_subject(reader, options, source);
    Figure figure = make_source(reader, options, source);
    figure.name = "spectrum";
    complete_figure(figure, reader, options, {});
    return figure;
}

Table adjacent_numbers(const trace::Reader& reader, const FigureOptions& options) {
    SubjectTable table("spectrum", "Mean cosine similarity of adjacent tokens",
                       {Column{"projection", "Projection", "", ColumnType::text}, SubjectKey::layer,
                        Column{"mean_cosine", "Mean cosine", "", ColumnType::real, 4}});
    for (const Projection& projection : projections()) {
        require_data(reader, Place::of_prompt(options.prompt), projection.adjacent);
        const auto values = reader.read<float>(Place::of_prompt(options.prompt), projection.adjacent);
        for (const int layer : shown_layers(reader, options, true)) {
            table.add(Subject{.layer = layer},
                      {std::string(projection.name), static_cast<double>(values[static_cast<size_t>(layer)])});
        }
    }
    return table.take();
}

Table numbers_by_rank(const trace::Reader& reader, const FigureOptions& options, Source source) {
    std::string title = "Eigenvalues of WᵀW";
    Column value{"eigenvalue", "Eigenvalue", "", ColumnType::real, 4};
    if (source == Source::cumulative) {
        title = "Cumulative share of the eigenvalues of WᵀW";
        value = {"cumulative_share", "Cumulative share", "", ColumnType::real, 4};
    } else if (source == Source::contribution) {
        title = "Contribution of modes to the cosine of adjacent tokens";
        value = {"contribution", "Contribution", "", ColumnType::real, 4};
    }
    SubjectTable table("spectrum", std::move(title),
                       {Column{"projection", "Projection", "", ColumnType::text}, SubjectKey::layer, SubjectKey::head,
                        Column{"rank", "Rank", "", ColumnType::integer}, std::move(value)});
    for (const Projection& projection : projections()) {
        for (const Spectrum& spectrum : read_spectra(reader, options, projection, source)) {
            for (size_t i = 0; i < spectrum.values.size(); ++i) {
                table.add(spectrum.subject(projection),
                          {std::string(projection.name), static_cast<int64_t>(i + 1), spectrum.values[i]});
            }
        }
    }
    return table.take();
}

Table numbers_of(const trace::Reader& reader, const FigureOptions& options, Source source) {
    switch (source) {
        case Source::adjacent:
            return adjacent_numbers(reader, options);
        case Source::layer_similarity:
            return layer_similarity_numbers(reader, options);
        case Source::head_similarity:
            return head_similarity_numbers(reader, options, shown_layers(reader, options, false));
        case Source::alignment:
            return alignment_numbers(reader, options, shown_layers(reader, options, false));
        default:
            return numbers_by_rank(reader, options, source);
    }
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    const Source source = source_from_name(options.source);
    check_subject(reader, options, source);
    return numbers_of(reader, options, source);
}

}  // namespace

FigureDefinition spectrum_figure() {
    FigureDefinition definition{
        "spectrum",
        "Spectrum",
        "Eigenvalues of the Q, K and V projections; similarity of adjacent tokens, layers or heads; alignment of "
        "KVSlimmer's terms with the loss gradient",
        {{"source",
          "eigenvalues (default); cumulative: share of their sum; adjacent: cosine of adjacent tokens by layer; "
          "contribution: each mode's part of this cosine; layer-similarity, head-similarity: cosines of a token's keys "
          "and values between layers, or between the heads of a layer; alignment: cosines of c11, c12 and c22 with the "
          "loss gradient",
          {source_names.begin(), source_names.end()}},
         {"layers", "default: six, evenly spaced; for adjacent and layer-similarity all"},
         {"heads",
          "query heads whose projections are shown, with the KV heads that they use; default: whole layers",
          {},
          {"eigenvalues", "cumulative", "contribution"}}},
        check,
        make,
        numbers,
        "KVSlimmer, Figures 2, 3 and 8 to 14"};
    definition.is_of_prompt = [](const FigureOptions& options) {
        return !can_inspect_as_model(source_from_name(options.source));
    };
    return definition;
}

}  // namespace kvscope::analysis
