#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/drawing/figure_definition.h"
#include "analysis/head_maps.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "analysis/tables/table_format.h"

namespace kvscope::analysis {
namespace {

namespace schema = trace::schema::run;

bool stores_parts(const trace::Reader& reader, int prompt, int run) {
    const auto place = trace::Place::of_run(prompt, run);
    return reader.has(place, schema::stored_key_error) && reader.has(place, schema::stored_value_error);
}

std::vector<int> runs_in_parts(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<int> runs = chosen_runs(reader, options);
    std::erase_if(runs, [&](int run) { return !stores_parts(reader, options.prompt, run); });
    if (runs.empty())
        throw NothingToShow(fmt::format(
            "{}: no chosen run of prompt {} records a reconstruction error; run a policy that does not store "
            "whole keys and values, such as think, or a merging policy in shared mode",
            reader.path().string(), options.prompt));
    return runs;
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    check_runs_and_layers(reader, options);
    runs_in_parts(reader, options);
}

std::string note_of(const HeadMap& map, const std::vector<int>& layers) {
    float least = INFINITY, most = 0;
    for (const int layer : layers)
        for (size_t row = 0; row < map.n_rows; ++row) {
            const float value = map.values[static_cast<size_t>(layer) * map.n_rows + row];
            least = std::min(least, value);
            most = std::max(most, value);
        }
    if (least == most) return fmt::format("{:.1f} %", least);
    return fmt::format("{:.1f} to {:.1f} %", least, most);
}

/// Returns two maps per run: the relative errors of its keys and of its values, as shares.
std::vector<HeadMap> read_maps(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<HeadMap> maps;
    const std::vector<int> runs = runs_in_parts(reader, options);
    for (const int run : runs)
        for (const bool keys : {true, false}) {
            HeadMap map{run, reader.n_rows(options.prompt, run),
                        reader.read<float>(trace::Place::of_run(options.prompt, run),
                                           keys ? schema::stored_key_error : schema::stored_value_error),
                        keys ? "keys" : "values", ""};
            maps.push_back(std::move(map));
        }
    return maps;
}

std::vector<HeadMap> in_per_cent(std::vector<HeadMap> maps, const std::vector<int>& layers) {
    for (HeadMap& map : maps) {
        for (float& value : map.values) value *= 100;
        map.note = note_of(map, layers);
    }
    return maps;
}

std::vector<std::string> without_errors(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<std::string> labels;
    for (const int run : options.runs.empty() ? std::vector<int>{} : chosen_runs(reader, options))
        if (!stores_parts(reader, options.prompt, run)) labels.push_back(run_label(reader.run(options.prompt, run)));
    return labels;
}

std::string left_out(const trace::Reader& reader, const FigureOptions& options) {
    const auto labels = without_errors(reader, options);
    return labels.empty() ? "" : fmt::format("{}: no reconstruction error is recorded", fmt::join(labels, ", "));
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    ColorScale scale;
    scale.title = "Relative error";
    scale.unit = "%";
    scale.max = 1;
    std::vector<HeadMap> maps = read_maps(reader, options);
    combine_query_heads(maps, reader, options, OfGroup::mean);
    maps = in_per_cent(std::move(maps), chosen_layers(reader, options));
    Figure figure = head_maps_figure(reader, options, maps, scale);
    figure.name = "reconstruction";
    figure.title = "Error of the stored keys and values";
    figure.caption =
        "Relative error (2-norm, over all tokens in the cache) of the keys and values that each head reads from its "
        "cache. In a merged entry of mass n, each token has 1/n of the value.";
    if (const auto labels = without_errors(reader, options); !labels.empty())
        figure.caption += fmt::format(" Omitted because they record no error: {}.", fmt::join(labels, ", "));
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    check(reader, options);
    Table table = head_maps_numbers(
        reader, options, read_maps(reader, options),
        {{"key_error", "Key error", "", ColumnType::real, 4}, {"value_error", "Value error", "", ColumnType::real, 4}});
    table.name = "reconstruction";
    table.title = "Error of the stored keys and values";
    return table;
}

}  // namespace

FigureDefinition reconstruction_figure() {
    FigureDefinition definition{
        "reconstruction",
        "Reconstruction error",
        "Relative error of the keys and values in the cache: maps of heads by layers for runs that do not store whole "
        "keys and values",
        {{"runs", "runs, by label, policy or number; default: all runs that record the error"},
         {"layers", "default: all"}},
        check,
        make,
        numbers};
    definition.left_out = left_out;
    definition.shown_runs = runs_in_parts;
    return definition;
}

}  // namespace kvscope::analysis
