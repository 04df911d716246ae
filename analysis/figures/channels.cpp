#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

namespace schema = trace::schema::run;

constexpr double layer_mm = 1.2;
constexpr double lightest_color = 0.3;  // lighter colors are invisible on white

struct Run {
    int index = 0;
    trace::RunAttributes attributes;
    size_t n_rows = 0;          ///< rows per layer (R)
    size_t n_channels = 0;      ///< channels per head (d)
    std::vector<uint8_t> kept;  ///< whether each channel is kept (L, R, d)
    std::vector<float> scores;  ///< score of each channel (L, R, d), or empty

    size_t place(int layer, size_t row, size_t channel) const {
        return (static_cast<size_t>(layer) * n_rows + row) * n_channels + channel;
    }
};

std::vector<Run> runs_of_channels(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    std::vector<Run> runs;
    for (const int run : chosen_runs(reader, options)) {
        const auto place = trace::Place::of_run(options.prompt, run);
        if (!reader.has(place, schema::channels_kept)) continue;
        Run& read = runs.emplace_back(Run{run,
                                          reader.run(options.prompt, run),
                                          reader.n_rows(options.prompt, run),
                                          static_cast<size_t>(reader.model().head_dim),
                                          reader.read<uint8_t>(place, schema::channels_kept),
                                          {}});
        if (reader.has(place, schema::channel_scores)) read.scores = reader.read<float>(place, schema::channel_scores);
    }
    if (runs.empty())
        throw NothingToShow(
            fmt::format("{}: no chosen run of prompt {} drops key channels; run a policy that does, such as think",
                        reader.path().string(), options.prompt));
    return runs;
}

std::vector<int> shown_runs(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<int> indices;
    for (const Run& run : runs_of_channels(reader, options)) indices.push_back(run.index);
    return indices;
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    check_runs_and_layers(reader, options);
    runs_of_channels(reader, options);
}

/// Returns the number of heads that keep each channel (layers, d), or their share in per cent.
HeatMap heat_map(const Run& run, const std::vector<int>& layers, bool is_share) {
    HeatMap map;
    set_map_extent(map, layers.size(), run.n_channels);
    for (const int layer : layers)
        for (size_t channel = 0; channel < run.n_channels; ++channel) {
            int heads = 0;
            for (size_t row = 0; row < run.n_rows; ++row) heads += run.kept[run.place(layer, row, channel)] != 0;
            map.values.push_back(is_share ? 100.0f * static_cast<float>(heads) / static_cast<float>(run.n_rows)
                                          : static_cast<float>(heads));
        }
    return map;
}

std::string note_of(const Run& run, const std::vector<int>& layers) {
    size_t kept = 0;
    for (const int layer : layers) {
        const auto first = run.kept.begin() + static_cast<std::ptrdiff_t>(run.place(layer, 0, 0));
        kept += static_cast<size_t>(std::count_if(
            first, first + static_cast<std::ptrdiff_t>(run.n_rows * run.n_channels), [](uint8_t k) { return k != 0; }));
    }
    const auto n_heads = static_cast<double>(layers.size() * run.n_rows);
    return fmt::format("{:.1f} of {} channels per head", static_cast<double>(kept) / n_heads, run.n_channels);
}

ColorScale scale_of(const std::vector<Run>& runs, bool is_share) {
    ColorScale scale;
    scale.title = "Heads that keep the channel";
    scale.map_begin = lightest_color;
    scale.background_label = "none";
    scale.min = 1;
    for (const Run& run : runs) scale.max = std::max(scale.max, static_cast<double>(run.n_rows));
    scale.whole_numbers = true;
    if (is_share) {
        scale.title = "Share of heads that keep the channel";
        scale.unit = "%";
        scale.min = 100 / scale.max;
        scale.max = 100;
        scale.whole_numbers = false;
    }
    return scale;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<Run> runs = runs_of_channels(reader, options);
    const std::vector<int> layers = chosen_layers(reader, options);
    const bool is_share = options.common_unit || std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
                              return run.n_rows != runs.front().n_rows;
                          });
    Figure figure;
    figure.name = "channels";
    figure.title = "Number of heads that keep each key channel";
    lay_out_maps(figure, runs.size(), runs.size() < 3 || is_narrow_figure(options) ? 1 : 2, layers.size(), layer_mm);
    figure.shared_y = true;
    figure.width_mm = figure.columns == 1 ? 84 : 174;
    figure.color_scales.push_back(scale_of(runs, is_share));
    std::vector<int> indices;
    for (size_t i = 0; i < runs.size(); ++i) {
        indices.push_back(runs[i].index);
        Panel& panel = figure.panels.emplace_back();
        panel.row = i / figure.columns;
        panel.column = i % figure.columns;
        panel.title = run_label(runs[i].attributes);
        panel.note = note_of(runs[i], layers);
        panel.subject.run = runs[i].index;
        panel.x.title = "Key channel";
        panel.x.min = -0.5;
        panel.x.max = static_cast<double>(runs[i].n_channels) - 0.5;
        panel.x.whole_numbers = true;
        panel.y = layer_axis(layers);
        panel.y.reversed = true;
        panel.shapes.emplace_back(heat_map(runs[i], layers, is_share));
    }
    figure.caption =
        "Number of heads in a layer that keep each key channel. The newest entries are not counted, because a policy "
        "may keep all their channels.";
    complete_figure(figure, reader, options, indices);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    check(reader, options);
    SubjectTable table(
        "channels", "Key channels that each head keeps, and their scores",
        {SubjectKey::run, label_column(), SubjectKey::layer, SubjectKey::head,
         Column{"channel", "Channel", "", ColumnType::integer}, Column{"kept", "Kept", "", ColumnType::integer},
         Column{"score", "Score", "", ColumnType::real, 6}});
    const std::vector<int> layers = chosen_layers(reader, options);
    for (const Run& run : runs_of_channels(reader, options)) {
        const std::string label = run_label(run.attributes);
        for (const int layer : layers)
            for (size_t row = 0; row < run.n_rows; ++row)
                for (size_t channel = 0; channel < run.n_channels; ++channel) {
                    const size_t at = run.place(layer, row, channel);
                    table.add(Subject{.run = run.index, .layer = layer, .head = static_cast<int>(row)},
                              {label, static_cast<int64_t>(channel), int64_t{run.kept[at] != 0},
                               run.scores.empty() ? std::nan("") : static_cast<double>(run.scores[at])});
                }
    }
    return table.take();
}

}  // namespace

FigureDefinition channels_figure() {
    FigureDefinition definition{
        "channels",
        "Key channels",
        "Number of heads that keep each key channel: one map of layers by channels per run that drops channels",
        {{"runs", "runs, by label, policy or number; default: all runs that drop channels"},
         {"layers", "default: all"}},
        check,
        make,
        numbers,
        "ThinK, Figure 3"};
    definition.shown_runs = shown_runs;
    return definition;
}

}  // namespace kvscope::analysis
