#include <fmt/format.h>

#include <algorithm>

#include "analysis/drawing/figure_definition.h"
#include "analysis/head_maps.h"
#include "analysis/measures/head_budget.h"
#include "analysis/runs/run_choice.h"
#include "analysis/tables/table_format.h"

namespace kvscope::analysis {
namespace {

std::vector<HeadMap> read_maps(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<HeadMap> maps;
    const std::vector<int> runs = chosen_runs(reader, options);
    const std::vector<int> layers = chosen_layers(reader, options);
    for (const int j : runs) {
        const auto kept = reader.kept(options.prompt, j);
        const auto n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
        const auto budgets = head_budgets(entry_sets(*kept, n_tokens));
        HeadMap map{j, kept->n_rows, {budgets.begin(), budgets.end()}, "", ""};
        uint32_t least = UINT32_MAX, most = 0;
        for (const int layer : layers)
            for (size_t row = 0; row < kept->n_rows; ++row) {
                const uint32_t entries = budgets[static_cast<size_t>(layer) * kept->n_rows + row];
                least = std::min(least, entries);
                most = std::max(most, entries);
            }
        map.note =
            least == most ? format_count(least) : fmt::format("{} to {}", format_count(least), format_count(most));
        maps.push_back(std::move(map));
    }
    return maps;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    ColorScale scale;
    scale.title = options.common_unit ? "Entries kept per KV head" : "Entries kept";
    scale.max = 1;
    std::vector<HeadMap> maps = read_maps(reader, options);
    combine_query_heads(maps, reader, options, OfGroup::sum);
    Figure figure = head_maps_figure(reader, options, maps, scale);
    figure.name = "budgets";
    figure.title = "Entries kept per head";
    figure.caption = "Number of prompt entries that each head of each layer keeps, including window and sinks.";
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    check_runs_and_layers(reader, options);
    Table table = head_maps_numbers(reader, options, read_maps(reader, options),
                                    {{"entries", "Entries", "", ColumnType::integer}});
    table.name = "budgets";
    table.title = "Entries kept per head";
    return table;
}

}  // namespace

FigureDefinition budgets_figure() {
    FigureDefinition definition{
        "budgets",
        "Budgets",
        "Number of entries that each head keeps: one map of heads by layers per run, all with the same color scale",
        {{"runs", "runs, by label, policy or number; default: all except full"}, {"layers", "default: all"}},
        check_runs_and_layers,
        make,
        numbers};
    definition.shown_runs = chosen_runs;
    return definition;
}

}  // namespace kvscope::analysis
