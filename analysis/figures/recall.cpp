#include "analysis/recall.h"

#include <fmt/format.h>

#include <utility>

#include "analysis/figure_definition.h"
#include "analysis/run_choice.h"
#include "analysis/share_figure.h"

namespace kvscope::analysis {
namespace {

struct Run {
    ShownRun shown;
    Recall recall;
};

/// Traces without the answer's attention are left out.
std::vector<Run> read_runs(std::span<const TracePart> parts) {
    const std::vector<ShownRun> shown = shown_runs(parts);
    std::vector<Run> runs;
    for (const TracePart& part : parts) {
        std::vector<ShownRun> of_part;
        std::vector<int> indices;
        for (const ShownRun& run : shown) {
            if (run.part != &part) continue;
            of_part.push_back(run);
            indices.push_back(run.index);
        }
        if (indices.empty() || !run_with_answer_attention(*part.reader, part.options.prompt)) continue;
        std::vector<Recall> recalls = recall_of_runs(*part.reader, part.options.prompt, indices);
        for (size_t i = 0; i < of_part.size(); ++i) runs.push_back({of_part[i], std::move(recalls[i])});
    }
    if (!runs.empty()) return runs;
    throw NothingToShow(
        fmt::format("{}: prompt {} does not say what the full cache's answer attends to (answer_attention), which "
                    "recall is measured against; make the trace again with `kvscope run`, without --no-record and "
                    "--no-compare",
                    parts.front().reader->path().string(), parts.front().options.prompt));
}

Figure make(std::span<const TracePart> parts) {
    std::vector<RunShares> runs;
    for (Run& run : read_runs(parts)) runs.push_back({run.shown, std::move(run.recall.layers), run.recall.model});
    Figure figure = share_figure(parts, runs, {"Recall", "% of best tokens"});
    figure.name = "recall";
    figure.title = "How much of what the answer attends to most is kept";
    figure.caption =
        "Of the tokens that the full cache's own answer attends to most, as many as the run's budget allows a KV head, "
        "the share that the head keeps: mean of each layer's heads, and (right) of the whole model.";
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    Table table;
    table.name = "recall";
    table.title =
        "Share of the tokens that the full cache's answer attends to most; without a head: mean of the layer; "
        "without a layer: of the model";
    table.columns = {{"run", "Run", "", ColumnType::integer},      {"label", "Label", "", ColumnType::text},
                     {"policy", "Policy", "", ColumnType::text},   {"budget", "Budget", "", ColumnType::integer},
                     {"layer", "Layer", "", ColumnType::integer},  {"head", "Head", "", ColumnType::integer},
                     {"recall", "Recall", "", ColumnType::real, 4}};
    const std::vector<int> layers = chosen_layers(reader, options);
    const TracePart part{&reader, options};
    for (const Run& run : read_runs({&part, 1})) {
        const trace::RunAttributes& attributes = run.shown.attributes();
        const auto add = [&](Cell layer, Cell head, double recall) {
            table.rows.push_back({{int64_t{run.shown.index}, run.shown.label, attributes.policy, attributes.budget,
                                   std::move(layer), std::move(head), recall}});
        };
        add(std::monostate{}, std::monostate{}, run.recall.model);
        const size_t n_rows = run.recall.heads.size() / run.recall.layers.size();
        for (const int layer : layers) {
            add(int64_t{layer}, std::monostate{}, run.recall.layers[static_cast<size_t>(layer)]);
            for (size_t row = 0; row < n_rows; ++row) {
                add(int64_t{layer}, static_cast<int64_t>(row),
                    run.recall.heads[static_cast<size_t>(layer) * n_rows + row]);
            }
        }
    }
    return table;
}

}  // namespace

FigureDefinition recall_figure() {
    return {"recall",
            "Recall",
            "Share of the tokens that the full cache's answer attends to most which each head keeps, by layer and for "
            "the whole model, one line per run",
            {{"runs", "labels, policies or numbers of runs; default: all but full"},
             {"layers", "default: all; the whole model's recall always counts all"}},
            of_one_trace<make>,
            numbers,
            "DapQ, Figure 3",
            make};
}

}  // namespace kvscope::analysis
