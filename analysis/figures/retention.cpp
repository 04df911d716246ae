#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/measures/heads_keeping_token.h"
#include "analysis/measures/result_row.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "analysis/tables/table_format.h"

namespace kvscope::analysis {
namespace {

constexpr size_t runs_in_one_column = 8;  // more runs need two columns to fit on a page
constexpr double layer_mm = 0.55;
constexpr double lightest_color = 0.3;             // lighter colors are invisible on white
constexpr double lightest_color_of_merged = 0.12;  // for fractions of merged entries, which cover large areas

struct Run {
    int index = 0;
    trace::RunAttributes attributes;
    std::shared_ptr<const trace::Kept> kept;
    size_t n_tokens = 0;
    KeptSets sets() const { return kept_sets(*kept, n_tokens); }
    double coverage = 0;
    std::vector<double> counts{};  ///< count_heads_keeping_per_layer(sets())
};

std::vector<Run> read_runs(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    std::vector<Run> runs;
    const auto n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    const std::vector<int> chosen = chosen_runs(reader, options);
    for (const int index : chosen) {
        Run& run = runs.emplace_back(
            Run{index, reader.run(options.prompt, index), reader.kept(options.prompt, index), n_tokens});
        run.counts = count_heads_keeping_per_layer(run.sets());
    }
    // The reader holds the entries that it has read, from which rows of earlier versions are computed.
    const std::vector<trace::ResultRow> rows = result_rows(reader, options.prompt, chosen, ignore_damage);
    for (size_t i = 0; i < rows.size(); ++i) runs[i].coverage = rows[i].coverage;
    return runs;
}

/// Returns one column per budget if all policies have equally many budgets; otherwise 1 or 2.
size_t columns_for(const std::vector<Run>& runs, const FigureOptions& options) {
    if (runs.size() <= runs_in_one_column || is_narrow_figure(options)) return 1;
    const auto same_method = [](const Run& a, const Run& b) {
        return a.attributes.policy == b.attributes.policy &&
               a.attributes.parameters_json == b.attributes.parameters_json;
    };
    size_t length = 1;
    while (length < runs.size() && same_method(runs[0], runs[length])) ++length;
    if (length < 2 || length > 4 || runs.size() % length != 0) return 2;
    for (size_t i = 0; i < runs.size(); ++i) {
        if (!same_method(runs[i], runs[i - i % length])) return 2;
    }
    return length;
}

HeatMap heat_map(const Run& run, const std::vector<int>& layers, double value_per_head) {
    HeatMap map;
    set_map_extent(map, layers.size(), run.n_tokens);
    map.values.reserve(map.rows * map.columns);
    for (const int layer : layers) {
        const auto first = run.counts.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(layer) * run.n_tokens);
        std::transform(first, first + static_cast<std::ptrdiff_t>(run.n_tokens), std::back_inserter(map.values),
                       [&](double count) { return static_cast<float>(count * value_per_head); });
    }
    return map;
}

bool merges(const std::vector<Run>& runs) {
    return std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.kept->merges(); });
}

ColorScale color_scale(const std::vector<Run>& runs, size_t most, bool is_share) {
    ColorScale scale;
    scale.map_begin = lightest_color;
    scale.background_label = "none";
    if (is_share) {
        scale.title = "Share of heads that keep the token";
        scale.unit = "%";
        scale.min = 100.0 / static_cast<double>(most);
        scale.max = 100;
    } else {
        scale.title = fmt::format("{} that keep the token",
                                  runs[0].attributes.granularity == "query_head" ? "Query heads" : "KV heads");
        scale.min = 1;
        scale.max = static_cast<double>(most);
        scale.whole_numbers = true;
    }
    return scale;
}

/// Returns the scale of runs that merge. Other runs have a separate scale, since they have only whole counts.
ColorScale merging_scale(const std::vector<Run>& runs, size_t most, bool is_share) {
    ColorScale scale = color_scale(runs, most, is_share);
    scale.title += " (1/n if n tokens merge)";
    double least = scale.min;
    for (const Run& run : runs) {
        if (!run.kept->merges()) continue;
        const double of_head = is_share ? 100.0 / static_cast<double>(run.kept->n_rows) : 1.0;
        least = std::min(least, of_head * smallest_positive_count(run.counts));
    }
    begin_log_scale_at(scale, least);
    scale.map_begin = lightest_color_of_merged;
    return scale;
}

Panel map_panel(const Run& run, const std::vector<int>& layers, bool is_share, size_t color_scale) {
    Panel panel = make_layer_token_panel(layers, run.n_tokens);
    panel.subject.run = run.index;
    panel.title = run_label(run.attributes);
    panel.note = fmt::format("coverage {:.1f} %", 100 * run.coverage);
    if (run.kept->merges())
        panel.note += fmt::format(", {:.1f} tokens per entry", static_cast<double>(run.kept->held_tokens.size()) /
                                                                   static_cast<double>(run.kept->indices.size()));
    const double value_per_head = is_share ? 100.0 / static_cast<double>(run.kept->n_rows) : 1.0;
    HeatMap map = heat_map(run, layers, value_per_head);
    map.color_scale = color_scale;
    panel.shapes.emplace_back(std::move(map));
    return panel;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<Run> runs = read_runs(reader, options);
    const std::vector<int> layers = chosen_layers(reader, options);
    const size_t n_tokens = runs[0].n_tokens;
    size_t max_rows = 0;
    bool same_rows = !options.common_unit;
    for (const Run& run : runs) {
        max_rows = std::max(max_rows, run.kept->n_rows);
        same_rows = same_rows && run.kept->n_rows == runs[0].kept->n_rows;
    }

    Figure figure;
    figure.name = "retention";
    figure.title = "Number of heads that keep each token";
    lay_out_maps(figure, runs.size(), columns_for(runs, options), layers.size(), layer_mm);
    figure.shared_y = true;
    figure.width_mm = 174;

    const auto does_merge = [](const Run& run) { return run.kept->merges(); };
    if (!std::all_of(runs.begin(), runs.end(), does_merge))
        figure.color_scales.push_back(color_scale(runs, max_rows, !same_rows));
    if (merges(runs)) figure.color_scales.push_back(merging_scale(runs, max_rows, !same_rows));

    std::vector<int> indices;
    for (size_t i = 0; i < runs.size(); ++i) {
        indices.push_back(runs[i].index);
        const size_t scale = runs[i].kept->merges() ? figure.color_scales.size() - 1 : 0;
        Panel panel = map_panel(runs[i], layers, !same_rows, scale);
        panel.row = i / figure.columns;
        panel.column = i % figure.columns;
        figure.panels.push_back(std::move(panel));
    }
    figure.caption = fmt::format(
        "Number of heads in a layer that keep each of the prompt's {} tokens. A pixel with several tokens shows the "
        "largest "
        "number. Coverage: share of the tokens that at least one head of any layer keeps.",
        format_count(static_cast<int64_t>(n_tokens)));
    if (merges(runs))
        figure.caption +=
            " A token in a merged entry of n tokens counts as 1/n, so that a map sums to the number of entries in the "
            "cache.";
    complete_figure(figure, reader, options, indices);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    check_runs_and_layers(reader, options);
    SubjectTable table(
        "retention",
        "Heads that keep each token, and the entries that the token takes. Each of n merged tokens takes 1/n. "
        "Tokens that no head of a layer keeps are omitted",
        {SubjectKey::run, label_column(), SubjectKey::layer, SubjectKey::token,
         Column{"heads", "Heads", "", ColumnType::integer}, Column{"heads_total", "Of", "", ColumnType::integer},
         Column{"entries", "Entries", "", ColumnType::real, 2}});
    const std::vector<int> layers = chosen_layers(reader, options);
    for (const Run& run : read_runs(reader, options)) {
        const std::vector<uint16_t> holding = count_holding_heads(run.sets());
        const std::string label = run_label(run.attributes);
        for (const int layer : layers) {
            for (size_t token = 0; token < run.n_tokens; ++token) {
                const size_t place = static_cast<size_t>(layer) * run.n_tokens + token;
                if (holding[place] == 0) continue;
                table.add(Subject{.run = run.index, .layer = layer, .token = static_cast<int>(token)},
                          {label, int64_t{holding[place]}, static_cast<int64_t>(run.kept->n_rows), run.counts[place]});
            }
        }
    }
    return table.take();
}

}  // namespace

FigureDefinition retention_figure() {
    FigureDefinition definition{
        "retention",
        "Retention",
        "Number of heads that keep each token: one map of layers by tokens per run",
        {{"runs", "runs, by label, policy or number; default: all except full"}, {"layers", "default: all"}},
        check_runs_and_layers,
        make,
        numbers,
        "K-VEC, Figure 4"};
    definition.shown_runs = chosen_runs;
    return definition;
}

}  // namespace kvscope::analysis
