#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/measures/entry_cardinality.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "analysis/tables/table_format.h"

namespace kvscope::analysis {
namespace {

constexpr double layer_mm = 0.7;
constexpr double lightest_color = 0.15;  // lighter colors are invisible on white

struct Run {
    int index = 0;
    std::string label;
    std::shared_ptr<const trace::Kept> kept;
};

std::vector<Run> runs_that_merge(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    std::vector<Run> runs;
    for (const int run : chosen_runs(reader, options)) {
        auto kept = reader.kept(options.prompt, run);
        if (kept->merges()) runs.push_back({run, run_label(reader.run(options.prompt, run)), std::move(kept)});
    }
    if (runs.empty())
        throw NothingToShow(
            fmt::format("{}: no chosen run of prompt {} records which tokens share an entry; run a policy that merges "
                        "entries, such as kvslimmer or asymkv (cam merges only values and does not record the tokens)",
                        reader.path().string(), options.prompt));
    return runs;
}

std::vector<int> shown_runs(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<int> indices;
    for (const Run& run : runs_that_merge(reader, options)) indices.push_back(run.index);
    return indices;
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    check_runs_and_layers(reader, options);
    runs_that_merge(reader, options);
}

HeatMap heat_map(const std::vector<float>& sizes, const std::vector<int>& layers, size_t n_tokens) {
    HeatMap map;
    set_map_extent(map, layers.size(), n_tokens);
    for (const int layer : layers) {
        const auto first = sizes.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(layer) * n_tokens);
        map.values.insert(map.values.end(), first, first + static_cast<std::ptrdiff_t>(n_tokens));
    }
    return map;
}

std::string note_of(const Run& run, const std::vector<int>& layers) {
    uint64_t entries = 0, tokens = 0;
    for (const int layer : layers)
        for (size_t row = 0; row < run.kept->n_rows; ++row) {
            entries += run.kept->count(static_cast<size_t>(layer), row);
            tokens += run.kept->held(static_cast<size_t>(layer), row).size();
        }
    return fmt::format("{:.2f} tokens per entry", static_cast<double>(tokens) / static_cast<double>(entries));
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<Run> runs = runs_that_merge(reader, options);
    const std::vector<int> layers = chosen_layers(reader, options);
    const auto n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());

    Figure figure;
    figure.name = "merging";
    figure.title = "Tokens that share an entry";
    lay_out_maps(figure, runs.size(), 1, layers.size(), layer_mm);
    figure.width_mm = 174;

    ColorScale scale;
    scale.title = "Tokens in the entry";
    scale.map_begin = lightest_color;
    scale.scale = Scale::logarithmic;
    scale.min = 1;
    scale.max = 2;
    scale.background_label = "dropped";
    std::vector<int> indices;
    for (size_t i = 0; i < runs.size(); ++i) {
        const auto sizes = cardinalities_in_alternating_shades(*runs[i].kept, n_tokens);
        HeatMap map = heat_map(sizes, layers, n_tokens);
        scale.max = std::max(scale.max, double{*std::max_element(map.values.begin(), map.values.end())});
        indices.push_back(runs[i].index);
        Panel panel = make_layer_token_panel(layers, n_tokens);
        panel.subject.run = runs[i].index;
        panel.row = i;
        panel.title = runs[i].label;
        panel.note = note_of(runs[i], layers);
        panel.shapes.emplace_back(std::move(map));
        figure.panels.push_back(std::move(panel));
    }
    figure.color_scales.push_back(scale);
    figure.caption = fmt::format(
        "For each of the prompt's {} tokens, the map shows the number of tokens in its largest entry in each layer. "
        "Every second merged entry is drawn with a 20 % smaller value, so that adjacent entries differ in color. A "
        "pixel with several tokens "
        "shows the largest entry.",
        format_count(static_cast<int64_t>(n_tokens)));
    complete_figure(figure, reader, options, indices);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    check(reader, options);
    SubjectTable table("merging", "Merged entries",
                       {SubjectKey::run, label_column(), SubjectKey::layer, SubjectKey::head,
                        Column{"first_token", "First token", "", ColumnType::integer},
                        Column{"last_token", "Last token", "", ColumnType::integer},
                        Column{"cardinality", "Cardinality", "", ColumnType::real, 2}});
    const auto n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    for (const Run& run : runs_that_merge(reader, options))
        for (const int layer : chosen_layers(reader, options))
            for (size_t row = 0; row < run.kept->n_rows; ++row)
                for (const auto& entry : list_merged_entries(*run.kept, static_cast<size_t>(layer), row, n_tokens))
                    table.add(Subject{.run = run.index, .layer = layer, .head = static_cast<int>(row)},
                              {run.label, int64_t{entry.first}, int64_t{entry.last}, double{entry.cardinality}});
    return table.take();
}

}  // namespace

FigureDefinition merging_figure() {
    FigureDefinition definition{
        "merging",
        "Merged entries",
        "Number of tokens in each token's entry: one map of layers by tokens per run that merges",
        {{"runs", "runs, by label, policy or number; default: all runs that merge"}, {"layers", "default: all"}},
        check,
        make,
        numbers};
    definition.shown_runs = shown_runs;
    return definition;
}

}  // namespace kvscope::analysis
