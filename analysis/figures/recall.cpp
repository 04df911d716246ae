#include "analysis/measures/recall.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <variant>

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

constexpr size_t most_lines = 8;  // readers cannot distinguish more lines in one panel

ShareLayout layout_of(const FigureOptions& options) {
    return {share_axes_from_name(options.own_text("over", "")), most_lines};
}

bool is_over_window(const FigureOptions& options) { return layout_of(options).axes == ShareAxes::window; }

[[noreturn]] void refuse_windows(const trace::Reader& reader) {
    throw NothingToShow(
        fmt::format("{}: --over window needs runs that differ only in the parameter window, but no chosen runs do",
                    reader.path().string()));
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    check_runs_and_layers(reader, options);
    const TracePart part{&reader, options};
    require_recall(part);
    if (is_over_window(options) && std::ranges::none_of(differ_only_in_window(shown_runs({&part, 1})), std::identity()))
        refuse_windows(reader);
}

struct Runs {
    std::vector<Run> measured;
    std::vector<ShownRun> left_out;  ///< runs that drop no tokens and therefore have a recall of 1
    std::vector<ShownRun> unknown;   ///< runs whose recall the trace does not store
    std::vector<ShownRun> alone;     ///< for --over window: runs without another window
};

/// Keeps the runs that differ only in the window if the x axis is the window. @throws NothingToShow if there are none
void keep_windows(Runs& runs, const TracePart& part) {
    if (!is_over_window(part.options)) return;
    std::vector<ShownRun> shown;
    for (const Run& run : runs.measured) shown.push_back(run.shown);
    const std::vector<bool> differ = differ_only_in_window(shown);
    std::vector<Run> kept;
    for (size_t i = 0; i < shown.size(); ++i) {
        if (differ[i])
            kept.push_back(std::move(runs.measured[i]));
        else
            runs.alone.push_back(shown[i]);
    }
    if (kept.empty()) refuse_windows(*part.reader);
    runs.measured = std::move(kept);
}

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
    if (!runs.measured.empty()) {
        keep_windows(runs, parts.front());
        return runs;
    }
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
           text_of_left_out("the trace does not store their recall", runs.unknown) +
           text_of_left_out("no other run differs only in the window", runs.alone);
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
    std::ranges::move(b.alone, std::back_inserter(a.alone));
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

std::string text_of_axes(ShareAxes axes, size_t n_panels) {
    switch (axes) {
        case ShareAxes::layer:
            return "Mean over the heads of each layer.";
        case ShareAxes::budget:
            return "Mean over the whole model.";
        case ShareAxes::window:
            return "Mean over the whole model. A line joins runs that differ only in the window.";
        case ShareAxes::layer_and_budget:
            break;
    }
    return n_panels == 2 ? "Left: mean over the heads of each layer; right: mean over the whole model."
                         : "Panels by layer: mean over the heads; panels by budget: mean over the whole model.";
}

Figure make(std::span<const TracePart> parts) {
    Runs runs = read_runs(parts);
    Figure figure = share_figure(parts, shares_of(std::move(runs.measured)), measure, layout_of(parts.front().options));
    figure.name = "recall";
    figure.title = "Recall of the tokens that the answer attends to most";
    figure.caption =
        "Recall: kept share of the B tokens to which the full run's answer attends most, where B is the run's budget. ";
    figure.caption += text_of_axes(layout_of(parts.front().options).axes, figure.panels.size());
    figure.caption += text_of_left_out(runs);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    check(reader, options);
    std::vector<std::variant<SubjectKey, Column>> columns{
        SubjectKey::run, label_column(), Column{"policy", "Policy", "", ColumnType::text}, budget_column()};
    const bool with_window = is_over_window(options);
    if (with_window) columns.emplace_back(Column{"window", "Window", "queries", ColumnType::integer});
    columns.emplace_back(SubjectKey::layer);
    columns.emplace_back(SubjectKey::head);
    columns.emplace_back(Column{"recall", "Recall", "", ColumnType::real, 4});
    SubjectTable table("recall",
                       "Recall of the tokens that the full run's answer attends to most. A row without a head "
                       "contains the layer's mean; a row without a layer contains the model's mean",
                       std::move(columns));
    const std::vector<int> layers = chosen_layers(reader, options);
    const TracePart part{&reader, options};
    for (const Run& run : read_runs({&part, 1}).measured) {
        const trace::RunAttributes& attributes = run.shown.attributes();
        const auto add = [&](int layer, int head, double recall) {
            std::vector<Cell> cells{run.shown.label, attributes.policy, budget_cell(attributes)};
            if (with_window) cells.emplace_back(static_cast<int64_t>(*window_parameter(attributes)));
            cells.emplace_back(recall);
            table.add(Subject{.run = run.shown.index, .layer = layer, .head = head}, std::move(cells));
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
    Figure figure = share_difference_figure(sides, pairs.measured, measure, layout_of(sides[0].options));
    figure.name = "recall";
    figure.title =
        "Recall of the tokens that the answer attends to most, A − B, " + with_unit(measure.title, measure.percent());
    figure.caption = fmt::format(
        "Kept share of the tokens to which the full run's answer attends most: each run of A ({}) minus the paired run "
        "of B ({}). {}",
        sides[0].name, sides[1].name, text_of_axes(layout_of(sides[0].options).axes, figure.panels.size()));
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
             {"layers", "default: all; the model's recall always includes all layers"},
             {"over",
              "x axis: layer, budget, or window, the parameter in which runs differ; default: panels by layer and by "
              "budget",
              {},
              {},
              "layer and budget"}},
            check,
            make_from_one_trace<make>,
            numbers,
            "DapQ, Figure 3",
            make,
            make_difference,
            difference_numbers};
}

}  // namespace kvscope::analysis
