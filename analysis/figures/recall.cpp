#include "analysis/measures/recall.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/measures/kept_sets.h"
#include "analysis/runs/rows_of_shown_runs.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "analysis/share_figure.h"

namespace kvscope::analysis {
namespace {

struct Run {
    ShownRun shown;
    Recall recall;
    double model = 0;  ///< recall of the whole model
};

void require_recall(const TracePart& part) {
    if (has_recall(*part.reader, part.options.prompt)) return;
    throw NothingToShow(fmt::format(
        "{}: prompt {} has no answer_attention, the attention of the full run's answer, which recall needs; "
        "make the trace again with the full run's measures and with comparisons to the full run",
        part.reader->path().string(), part.options.prompt));
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    check_runs_and_layers(reader, options);
    require_recall({&reader, options});
}

struct Runs {
    std::vector<Run> measured;
    std::vector<ShownRun> left_out;  ///< runs that drop no tokens and therefore have a recall of 1
    std::vector<ShownRun> unknown;   ///< runs whose recall the trace does not store
};

/// Returns the chosen runs of all traces with recall.
Runs read_runs(std::span<const TracePart> parts) {
    const std::vector<ShownRun> shown = shown_runs(parts);
    Runs runs;
    for (const TracePart& part : parts) {
        if (!has_recall(*part.reader, part.options.prompt)) continue;
        std::vector<ShownRun> of_part;
        std::vector<int> indices;
        std::vector<std::shared_ptr<const trace::Kept>> kept;
        for (const ShownRun& run : shown) {
            if (run.part != &part) continue;
            auto of_run = part.reader->kept(part.options.prompt, run.index);
            if (!can_measure_kept_tokens(run.attributes(), kept_sets(*of_run, run.n_tokens()))) {
                runs.left_out.push_back(run);
                continue;
            }
            kept.push_back(std::move(of_run));
            of_part.push_back(run);
            indices.push_back(run.index);
        }
        if (indices.empty()) continue;
        std::vector<Recall> recalls = recall_of_runs(*part.reader, part.options.prompt, indices, kept);
        const std::vector<trace::ResultRow> rows = rows_of_shown_runs(of_part);
        for (size_t i = 0; i < of_part.size(); ++i) {
            if (recalls[i].heads.empty())
                runs.unknown.push_back(of_part[i]);
            else
                runs.measured.push_back({of_part[i], std::move(recalls[i]), rows[i].recall});
        }
    }
    if (!runs.measured.empty()) return runs;
    for (const TracePart& part : parts) require_recall(part);
    if (!runs.unknown.empty())
        throw NothingToShow(fmt::format("{}: the trace has no recall of {}", parts.front().reader->path().string(),
                                        join_run_labels(runs.unknown)));
    throw NothingToShow(fmt::format("{}: recall needs runs that drop tokens, but no chosen run does ({})",
                                    parts.front().reader->path().string(), join_run_labels(runs.left_out)));
}

const ShareMeasure measure{"Recall", "best tokens"};

std::vector<RunShares> shares_of(std::vector<Run> measured) {
    std::vector<RunShares> runs;
    for (Run& run : measured) runs.push_back({run.shown, std::move(run.recall.layers), run.model});
    return runs;
}

std::string text_of_left_out(const char* reason, std::span<const ShownRun> left_out) {
    if (left_out.empty()) return {};
    return fmt::format(" Omitted because {}: {}.", reason, join_run_labels(left_out));
}

std::string text_of_left_out(const Runs& runs) {
    return text_of_left_out("they drop no tokens", runs.left_out) +
           text_of_left_out("the trace does not store their recall", runs.unknown);
}

struct Pairs {
    std::vector<SharePair> measured;
    std::string text_of_left_out;  ///< names runs of A and B without recall
};

Pairs read_pairs(std::span<const TracePart, 2> sides) {
    Runs a = read_runs(sides.subspan(0, 1)), b = read_runs(sides.subspan(1, 1));
    const std::vector<RunShares> of_a = shares_of(std::move(a.measured)), of_b = shares_of(std::move(b.measured));
    Pairs read;
    std::ranges::move(b.left_out, std::back_inserter(a.left_out));
    std::ranges::move(b.unknown, std::back_inserter(a.unknown));
    read.text_of_left_out = text_of_left_out(a);
    const auto of = [](const std::vector<RunShares>& runs, const ShownRun& shown) {
        return std::find_if(runs.begin(), runs.end(),
                            [&](const RunShares& run) { return run.shown.index == shown.index; });
    };
    for (const ShownPair& pair : shown_pairs(sides)) {
        const auto in_a = of(of_a, pair.a), in_b = of(of_b, pair.b);
        if (in_a != of_a.end() && in_b != of_b.end()) read.measured.push_back({pair, *in_a, *in_b});
    }
    if (read.measured.empty())
        throw NothingToShow("recall needs a pair of runs that drop tokens, but no such run of A has a pair in B");
    return read;
}

Figure make(std::span<const TracePart> parts) {
    Runs runs = read_runs(parts);
    Figure figure = share_figure(parts, shares_of(std::move(runs.measured)), measure);
    figure.name = "recall";
    figure.title = "Recall of the tokens that the answer attends to most";
    figure.caption =
        "Recall: kept share of the B tokens to which the full run's answer attends most, where B is the run's budget. "
        "Left: mean over the heads of each layer; right: mean over the whole model.";
    figure.caption += text_of_left_out(runs);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    check(reader, options);
    SubjectTable table(
        "recall",
        "Recall of the tokens that the full run's answer attends to most. A row without a head "
        "contains the layer's mean; a row without a layer contains the model's mean",
        {SubjectKey::run, label_column(), Column{"policy", "Policy", "", ColumnType::text}, budget_column(),
         SubjectKey::layer, SubjectKey::head, Column{"recall", "Recall", "", ColumnType::real, 4}});
    const std::vector<int> layers = chosen_layers(reader, options);
    const TracePart part{&reader, options};
    for (const Run& run : read_runs({&part, 1}).measured) {
        const trace::RunAttributes& attributes = run.shown.attributes();
        const auto add = [&](int layer, int head, double recall) {
            table.add(Subject{.run = run.shown.index, .layer = layer, .head = head},
                      {run.shown.label, attributes.policy, budget_cell(attributes), recall});
        };
        add(-1, -1, run.model);
        const size_t n_rows = run.recall.heads.size() / run.recall.layers.size();
        for (const int layer : layers) {
            add(layer, -1, run.recall.layers[static_cast<size_t>(layer)]);
            for (size_t row = 0; row < n_rows; ++row) {
                add(layer, static_cast<int>(row), run.recall.heads[static_cast<size_t>(layer) * n_rows + row]);
            }
        }
    }
    return table.take();
}

Figure make_difference(std::span<const TracePart, 2> sides) {
    const Pairs pairs = read_pairs(sides);
    Figure figure = share_difference_figure(sides, pairs.measured, measure);
    figure.name = "recall";
    figure.title =
        "Recall of the tokens that the answer attends to most, A − B, " + with_unit(measure.title, measure.percent());
    figure.caption = fmt::format(
        "Kept share of the tokens to which the full run's answer attends most, by layer (left) and in the whole model "
        "(right): each run of A ({}) minus the paired run of B ({}).",
        sides[0].name, sides[1].name);
    figure.caption += pairs.text_of_left_out;
    return figure;
}

Table difference_numbers(std::span<const TracePart, 2> sides) {
    Table table = share_difference_numbers(sides, read_pairs(sides).measured, measure);
    table.name = "recall-difference";
    table.title = fmt::format(
        "Recall of the tokens that the full run's answer attends to most, A − B, {}. A row without a layer refers to "
        "the whole model",
        with_unit(measure.title, measure.share()));
    return table;
}

}  // namespace

FigureDefinition recall_figure() {
    return {"recall",
            "Recall",
            "Kept share of the tokens to which the full run's answer attends most, by layer and in the whole model, "
            "one line per run",
            {{"runs", "runs, by label, policy or number; default: all except full"},
             {"layers", "default: all; the model's recall always includes all layers"}},
            check,
            make_from_one_trace<make>,
            numbers,
            "DapQ, Figure 3",
            make,
            make_difference,
            difference_numbers};
}

}  // namespace kvscope::analysis
