#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/measures/recall.h"
#include "analysis/runs/missing_data.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"
#include "analysis/runs/shown_runs.h"
#include "analysis/what_if/curve_figure.h"
#include "analysis/what_if/curve_runs.h"

namespace kvscope::analysis {
namespace {

constexpr double usual_threshold = 90;  // in per cent

/// Returns the threshold as a share from 0 to 1.
double threshold_of(const FigureOptions& options) {
    constexpr double smallest = 0.1;  // in per cent
    return options.numeric_option("threshold", usual_threshold, smallest, 100) / 100;
}

std::string over_of(const FigureOptions& options) { return options.own_text("over", std::string(over_budget)); }

struct Choice {
    const TracePart* part = nullptr;
    size_t trace = 0;
    std::vector<LineStyle> styles;  ///< one per run of the prompt
    CurveChoice curves;

    const trace::Reader& reader() const { return *part->reader; }
    int prompt() const { return part->options.prompt; }
};

void require_measure(const TracePart& part, CurveMeasure measure) {
    const trace::Reader& reader = *part.reader;
    namespace schema = trace::schema;
    const auto nothing = [&](const schema::DataSet& data_set, const char* what) {
        return NothingToShow(fmt::format("{}: prompt {} has no {}, {}{}", reader.path().string(), part.options.prompt,
                                         data_set.path, what, why_data_is_missing(reader, data_set)));
    };
    if (measure == CurveMeasure::recall && !full_run_with_answer_attention(reader, part.options.prompt))
        throw nothing(schema::run::answer_attention, "the attention of the full run's answer, which recall needs");
    if (measure == CurveMeasure::attention &&
        !reader.has(trace::Place::of_prompt(part.options.prompt), schema::prompt::window_attention))
        throw nothing(schema::prompt::window_attention, "the attention of the window's queries");
}

Choice choose(std::span<const TracePart> parts, size_t trace) {
    const TracePart& part = parts[trace];
    const auto measure = curve_measure_from_name(part.options.source);
    const std::vector<int> shown = chosen_runs(*part.reader, part.options);
    const std::vector<trace::RunAttributes> runs = part.reader->runs(part.options.prompt);
    Choice choice{&part, trace, part.styles.empty() ? run_styles(runs) : part.styles, {}};
    const std::string over = over_of(part.options);
    choice.curves =
        group_runs_into_curves(runs, shown, part.reader->prompt(part.options.prompt).visible_tokens(), over);
    if (choice.curves.curves.empty())
        throw NothingToShow(choice.curves.left_out.empty()
                                ? fmt::format("{}: no chosen run selects entries", part.reader->path().string())
                                : choice.curves.left_out.front().why);
    require_measure(part, measure);
    return choice;
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    threshold_of(options);
    const TracePart part{&reader, options};
    const Choice choice = choose({&part, 1}, 0);
    std::exception_ptr refused;
    for (const CurveRuns& curve : choice.curves.curves) {
        try {
            find_what_if_for_curve(reader, options.prompt, curve, over_of(options));
            return;
        } catch (const NothingToShow&) {
            if (!refused) refused = std::current_exception();
        }
    }
    std::rethrow_exception(refused);
}

struct Made {
    DrawnCurve drawn;
    const TracePart* part = nullptr;
    CurveRuns runs;
};

Made make_curve(const Choice& choice, const CurveRuns& runs, const WhatIf& what_if,
                const std::optional<AnswerAttention>& attention) {
    const FigureOptions& options = choice.part->options;
    const std::string over = over_of(options);
    const auto select = [&](const policies::ParameterValues& values, int64_t budget) {
        return what_if(values, budget);
    };
    Made made{{}, choice.part, runs};
    DrawnCurve& drawn = made.drawn;
    drawn.label = choice.part->name.empty() ? runs.label : fmt::format("{}: {}", choice.part->name, runs.label);
    drawn.style = choice.styles[static_cast<size_t>(runs.runs.front())];
    drawn.subject = {.trace = choice.trace, .run = runs.runs.front()};
    drawn.points = what_if_curve(choice.reader(), choice.prompt(), runs.source, over, select, attention);
    for (const auto& [x, run] : runs.places) drawn.recorded.emplace_back(x, Subject{.trace = choice.trace, .run = run});
    if (over == over_budget)
        drawn.reaches = smallest_budget_reaching_share(choice.reader(), choice.prompt(), runs.source, drawn.points,
                                                       curve_measure_from_name(options.source), threshold_of(options),
                                                       select, attention);
    return made;
}

struct Curves {
    std::vector<Made> made;
    std::vector<std::string> left_out;  ///< labels of runs without a curve
    double full_bytes = 0;
};

struct Selections {
    std::vector<std::pair<CurveRuns, std::shared_ptr<const WhatIf>>> made;
    std::vector<std::string> left_out;
    std::exception_ptr refused;  ///< reason of the first run in `left_out`
};

Selections selections_of(const Choice& choice) {
    Selections selections;
    const auto leave_out = [&](const std::string& label) {
        const std::string& name = choice.part->name;
        selections.left_out.push_back(name.empty() ? label : fmt::format("{}: {}", name, label));
    };
    for (const LeftOut& each : choice.curves.left_out) leave_out(each.label);
    for (const CurveRuns& runs : choice.curves.curves) {
        try {
            selections.made.emplace_back(
                runs, find_what_if_for_curve(choice.reader(), choice.prompt(), runs, over_of(choice.part->options)));
        } catch (const NothingToShow&) {
            if (!selections.refused) selections.refused = std::current_exception();
            leave_out(runs.label);
        }
    }
    return selections;
}

std::string left_out(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    const auto labels = selections_of(choose({&part, 1}, 0)).left_out;
    if (labels.empty()) return "";
    const std::string over = over_of(options);
    return fmt::format("{}: the selection cannot be repeated at other {}", fmt::join(labels, ", "),
                       over == over_budget ? "budgets" : "values of " + over);
}

/// @throws NothingToShow with the first reason if there are no curves
Curves make_curves(std::span<const TracePart> parts) {
    Curves curves;
    std::exception_ptr refused;
    for (size_t i = 0; i < parts.size(); ++i) {
        try {
            const Choice choice = choose(parts, i);
            const auto attention = AnswerAttention::read(choice.reader(), choice.prompt());
            curves.full_bytes = std::max(curves.full_bytes, bytes_of_all_entries(choice.reader(), choice.prompt()));
            const Selections selections = selections_of(choice);
            if (!refused) refused = selections.refused;
            curves.left_out.insert(curves.left_out.end(), selections.left_out.begin(), selections.left_out.end());
            for (const auto& [runs, what_if] : selections.made)
                curves.made.push_back(make_curve(choice, runs, *what_if, attention));
        } catch (const NothingToShow&) {
            if (!refused) refused = std::current_exception();
        }
    }
    if (curves.made.empty()) std::rethrow_exception(refused);
    return curves;
}

std::string caption_of(const CurveAxes& axes, const Curves& curves) {
    std::string text = fmt::format(
        "{} of the whole model {}. At each point, the entries are selected from the recorded scores of one prefill. "
        "Circles are recorded runs.",
        axis_title_and_unit(axes.measure).first,
        axes.over == over_budget ? std::string("over the budget") : fmt::format("over the parameter {}", axes.over));
    if (!curves.left_out.empty())
        text += fmt::format(" Omitted because their selection cannot be repeated from the trace: {}.",
                            fmt::join(curves.left_out, ", "));
    return text;
}

Figure make(std::span<const TracePart> parts) {
    const FigureOptions& options = parts.front().options;
    const Curves curves = make_curves(parts);
    const CurveAxes axes{curve_measure_from_name(options.source), over_of(options), threshold_of(options),
                         curves.full_bytes};
    std::vector<DrawnCurve> drawn;
    std::vector<ShownRun> shown;
    for (const Made& made : curves.made) {
        drawn.push_back(made.drawn);
        for (const int run : made.runs.runs)
            shown.push_back({made.part, run, made.drawn.label, made.drawn.style, made.drawn.subject.trace});
    }
    Figure figure = curve_figure(drawn, axes);
    figure.name = "curves";
    figure.title = axes.over == over_budget ? "Kept entries by budget" : "Kept entries by " + axes.over;
    figure.caption = caption_of(axes, curves);
    complete_figure(figure, parts, shown);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    SubjectTable table(
        "curves", "Kept entries by budget or parameter",
        {SubjectKey::run, label_column(), Column{"over", "Over", "", ColumnType::text},
         Column{"x", "Value", "", ColumnType::real, 4}, Column{"coverage", "Coverage", "", ColumnType::real, 4},
         Column{"attention_kept", "Attention kept", "", ColumnType::real, 4},
         Column{"recall", "Recall", "", ColumnType::real, 4}, Column{"bytes", "Bytes", "", ColumnType::integer},
         Column{"reaches", "Smallest budget that reaches the threshold", "", ColumnType::integer}});
    const TracePart part{&reader, options};
    for (const Made& made : make_curves({&part, 1}).made)
        for (const CurvePoint& point : made.drawn.points)
            table.add(made.drawn.subject, {made.drawn.label, over_of(options), point.x, point.kept.coverage,
                                           known_cell(point.kept.attention_kept), known_cell(point.recall),
                                           static_cast<int64_t>(point.kept.bytes),
                                           made.drawn.reaches ? Cell(*made.drawn.reaches) : Cell()});
    return table.take();
}

}  // namespace

FigureDefinition curves_figure() {
    FigureDefinition definition{
        "curves",
        "Curves over budgets",
        "Coverage, attention kept, recall or bytes over budgets or a policy's parameter, computed from the recorded "
        "scores",
        {{"runs", "runs, by label, policy or number; default: all except full"},
         {"source", "the measure", {"coverage", "attention", "recall", "bytes"}},
         {"over", "x axis: budget, or a parameter that does not change the scores; default: budget", {}, {}, "budget"},
         {"threshold", "per cent; the legend shows the smallest budget that reaches it; default: 90", {}, {}, "90"}},
        check,
        make_from_one_trace<make>,
        numbers};
    definition.make_joint = make;
    definition.left_out = left_out;
    return definition;
}

}  // namespace kvscope::analysis
