#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/measures/token_coverage.h"
#include "analysis/runs/rows_of_shown_runs.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "analysis/share_figure.h"

namespace kvscope::analysis {
namespace {

struct Run {
    ShownRun shown;
    std::vector<Coverage> layers;  ///< one per layer of the model
    double model = 0;              ///< share of the tokens that at least one layer keeps
};

const ShareMeasure measure{"Coverage", "tokens"};

std::vector<Run> read_runs(std::span<const ShownRun> shown) {
    std::vector<Run> runs;
    for (const ShownRun& run : shown) {
        const auto kept = run.part->reader->kept(run.part->options.prompt, run.index);
        runs.push_back({run, layer_coverage(kept_sets(*kept, run.n_tokens()))});
    }
    // The reader holds the entries that it has read, from which rows of earlier versions are computed.
    const std::vector<trace::ResultRow> rows = rows_of_shown_runs(shown);
    for (size_t i = 0; i < rows.size(); ++i) runs[i].model = rows[i].coverage;
    return runs;
}

RunShares shares_of(const Run& run) {
    RunShares shares{run.shown, {}, run.model};
    for (const Coverage& layer : run.layers) shares.layers.push_back(layer.share);
    return shares;
}

std::vector<SharePair> read_pairs(std::span<const TracePart, 2> sides) {
    std::vector<SharePair> pairs;
    for (const ShownPair& pair : shown_pairs(sides)) {
        const std::vector<Run> runs = read_runs(std::array{pair.a, pair.b});
        pairs.push_back({pair, shares_of(runs[0]), shares_of(runs[1])});
    }
    return pairs;
}

Figure make(std::span<const TracePart> parts) {
    std::vector<RunShares> runs;
    for (const Run& run : read_runs(shown_runs(parts))) runs.push_back(shares_of(run));
    Figure figure = share_figure(parts, runs, measure);
    figure.name = "coverage";
    figure.title = "Prompt tokens that at least one head keeps";
    const size_t n_tokens = runs.front().shown.n_tokens();
    const bool one_prompt =
        std::all_of(runs.begin(), runs.end(), [&](const RunShares& run) { return run.shown.n_tokens() == n_tokens; });
    figure.caption = fmt::format(
        "Share of the prompt's {}tokens that at least one head keeps, by layer (left) and in the whole model (right).",
        one_prompt ? fmt::format("{} ", n_tokens) : "");
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    check_runs_and_layers(reader, options);
    SubjectTable table(
        "coverage",
        "Prompt tokens that at least one head keeps, by layer. A row without a layer refers to the whole model",
        {SubjectKey::run, label_column(), Column{"policy", "Policy", "", ColumnType::text}, budget_column(),
         SubjectKey::layer, Column{"tokens", "Tokens", "", ColumnType::integer},
         Column{"share", "Share of prompt", "", ColumnType::real, 4}});
    const std::vector<int> layers = chosen_layers(reader, options);
    const TracePart part{&reader, options};
    for (const Run& run : read_runs(shown_runs({&part, 1}))) {
        const trace::RunAttributes& attributes = run.shown.attributes();
        const auto add = [&](int layer, double share) {
            table.add(
                Subject{.run = run.shown.index, .layer = layer},
                {run.shown.label, attributes.policy, budget_cell(attributes),
                 std::isnan(share) ? Cell()
                                   : Cell(int64_t{std::llround(share * static_cast<double>(run.shown.n_tokens()))}),
                 known_cell(share)});
        };
        add(-1, run.model);
        for (const int layer : layers) add(layer, run.layers[static_cast<size_t>(layer)].share);
    }
    return table.take();
}

Figure make_difference(std::span<const TracePart, 2> sides) {
    const std::vector<SharePair> pairs = read_pairs(sides);
    Figure figure = share_difference_figure(sides, pairs, measure);
    figure.name = "coverage";
    figure.title = "Prompt tokens that at least one head keeps, A − B, " + with_unit(measure.title, measure.percent());
    figure.caption = fmt::format(
        "Share of the prompt's tokens that at least one head keeps, by layer (left) and in the whole model (right): "
        "each "
        "run of A ({}) minus the paired run of B ({}).",
        sides[0].name, sides[1].name);
    return figure;
}

Table difference_numbers(std::span<const TracePart, 2> sides) {
    Table table = share_difference_numbers(sides, read_pairs(sides), measure);
    table.name = "coverage-difference";
    table.title = fmt::format(
        "Prompt tokens that at least one head keeps, A − B, {}. A row without a layer refers to the whole model",
        with_unit(measure.title, measure.share()));
    return table;
}

}  // namespace

FigureDefinition coverage_figure() {
    return {"coverage",
            "Coverage",
            "Share of prompt tokens that at least one head keeps, by layer and in the whole model, one line per run",
            {{"runs", "runs, by label, policy or number; default: all except full"},
             {"layers", "default: all; the model's coverage always includes all layers"}},
            check_runs_and_layers,
            make_from_one_trace<make>,
            numbers,
            "K-VEC, Tables 6 and 7",
            make,
            make_difference,
            difference_numbers};
}

}  // namespace kvscope::analysis
