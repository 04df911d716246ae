#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/color_map.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_pairs.h"
#include "analysis/runs/shown_runs.h"
#include "analysis/runs/step_divergence.h"

namespace kvscope::analysis {
namespace {

constexpr double least_divergence_nats = 1e-6;  // nats; smaller divergences are rounding errors
constexpr double curves_height_mm = 48;
constexpr double map_row_mm = 3;  // row height of the map below the curves; leaves space for labels
constexpr double least_map_mm = 9;
constexpr Rgb agreement_color{0xe4, 0xe4, 0xe4};
constexpr Rgb disagreement_color{0xd5, 0x5e, 0x00};

enum class Source { linear, logarithmic, map };

Source source_from_name(const std::string& name) {
    if (name.empty() || name == "linear") return Source::linear;
    if (name == "logarithmic" || name == "log") return Source::logarithmic;
    if (name == "map") return Source::map;
    throw FigureError(fmt::format("the figure step-kl has no source '{}'; it has linear, logarithmic, map", name));
}

struct Run {
    ShownRun shown;
    std::vector<float> kl;
    std::vector<uint8_t> agreement;
};

/// Returns nullopt if the run was not compared with the full run.
std::optional<Run> read_run(const ShownRun& shown) {
    auto steps = read_step_divergence(*shown.part->reader, shown.part->options.prompt, shown.index);
    if (!steps) return std::nullopt;
    return Run{shown, std::move(steps->kl), std::move(steps->agreement)};
}

struct Runs {
    std::vector<Run> runs;
    std::vector<ShownRun> left_out;  ///< runs that were not compared with the full run
    size_t n_steps = 0;
};

Runs read_runs(std::span<const TracePart> parts) {
    Runs all;
    for (const ShownRun& shown : shown_runs(parts)) {
        std::optional<Run> run = read_run(shown);
        if (!run) {
            all.left_out.push_back(shown);
            continue;
        }
        all.runs.push_back(std::move(*run));
        all.n_steps = std::max(all.n_steps, all.runs.back().kl.size());
    }
    if (all.n_steps == 0) {
        throw NothingToShow(fmt::format("{}: no chosen run was compared with the full run at each decode step",
                                        parts.front().reader->path().string()));
    }
    return all;
}

void check(const trace::Reader& reader, const FigureOptions& options) {
    source_from_name(options.source);
    const TracePart part{&reader, options};
    read_runs({&part, 1});
}

Axis step_axis(size_t n_steps) {
    Axis axis;
    axis.title = "Decode step";
    axis.dimension = Dimension::step;
    axis.min = -0.5;
    axis.max = static_cast<double>(n_steps) - 0.5;
    axis.whole_numbers = true;
    return axis;
}

const std::string measure = "KL to the full cache", measure_unit = "nats";

Panel curves(const Runs& all, Source source) {
    Panel panel;
    panel.x = step_axis(all.n_steps);
    panel.y.title = measure;
    panel.y.unit = measure_unit;
    double largest = 0;
    for (const Run& run : all.runs) {
        Line line;
        line.label = run.shown.label;
        line.subject = run.shown.subject();
        line.style = run.shown.style;
        line.style.width_pt = 0.8;
        if (run.kl.size() > 1) line.style.marker = Marker::none;
        for (size_t step = 0; step < run.kl.size(); ++step) {
            const auto value = static_cast<double>(run.kl[step]);
            line.x.push_back(static_cast<double>(step));
            line.y.push_back(
                source == Source::logarithmic && !std::isnan(value) ? std::max(value, least_divergence_nats) : value);
            if (std::isfinite(value)) largest = std::max(largest, value);
        }
        panel.shapes.emplace_back(std::move(line));
    }
    if (source == Source::logarithmic) {
        panel.y.scale = Scale::logarithmic;
        panel.y.min = least_divergence_nats;
        panel.y.max = std::max(largest * 1.5, least_divergence_nats * 10);
    } else {
        panel.y.min = 0;
        panel.y.max = std::max(largest * 1.06, least_divergence_nats);
    }
    return panel;
}

struct MapRow {
    std::string label;
    Subject subject;
};

/// Returns a panel with one row per run and no shapes.
Panel panel_of_rows(const std::vector<MapRow>& rows, size_t n_steps) {
    Panel panel;
    panel.x = step_axis(n_steps);
    panel.y.dimension = Dimension::run;
    panel.y.min = -0.5;
    panel.y.max = static_cast<double>(rows.size()) - 0.5;
    panel.y.reversed = true;
    for (size_t row = 0; row < rows.size(); ++row) {
        panel.y.ticks.push_back({static_cast<double>(row), rows[row].label});
        panel.y.numbers.push_back(rows[row].subject.run);
        panel.y.traces.push_back(rows[row].subject.trace);
    }
    return panel;
}

/// Draws the map below the curves. Each cell shows the class of one row at one step.
template <class ClassAt>
Panel class_map(const std::vector<Categories::Class>& classes, const std::vector<MapRow>& rows, size_t n_steps,
                const ClassAt& class_at) {
    Panel panel = panel_of_rows(rows, n_steps);
    panel.row = 1;
    Categories map;
    set_map_extent(map, rows.size(), n_steps);
    map.classes = classes;
    for (size_t row = 0; row < rows.size(); ++row)
        for (size_t step = 0; step < n_steps; ++step) map.ids.push_back(class_at(row, step));
    panel.shapes.emplace_back(std::move(map));
    return panel;
}

double height_of_rows(size_t n_rows) { return std::max(map_row_mm * static_cast<double>(n_rows), least_map_mm); }

/// Draws a map without curves: each cell shows the value of one row at one step, or NaN if there is no value.
template <class ValueAt>
Figure value_map(const std::vector<MapRow>& rows, size_t n_steps, const std::string& title, bool is_difference,
                 const ValueAt& value_at) {
    Figure figure;
    figure.name = "step-kl";
    figure.width_mm = 174;
    figure.panel_height_mm = height_of_rows(rows.size());
    HeatMap map;
    set_map_extent(map, rows.size(), n_steps);
    map.reduction = Reduction::magnitude;
    double farthest = 0;
    for (size_t row = 0; row < rows.size(); ++row) {
        for (size_t step = 0; step < n_steps; ++step) {
            map.values.push_back(value_at(row, step));
            if (std::isfinite(map.values.back()))
                farthest = std::max(farthest, std::abs(static_cast<double>(map.values.back())));
        }
    }
    ColorScale& scale = figure.color_scales.emplace_back();
    scale.title = title;
    scale.unit = measure_unit;
    scale.max = std::max(farthest, least_divergence_nats);
    scale.min = is_difference ? -scale.max : 0;
    if (is_difference) scale.map = ColorMap::blue_white_red;
    figure.panels.push_back(panel_of_rows(rows, n_steps));
    figure.panels.back().shapes.emplace_back(std::move(map));
    return figure;
}

const std::vector<Categories::Class> agreement_classes = {{"same greedy token", agreement_color},
                                                          {"another token", disagreement_color}};

std::vector<MapRow> rows_of(const Runs& all) {
    std::vector<MapRow> rows;
    for (const Run& run : all.runs) rows.push_back({run.shown.label, run.shown.subject()});
    return rows;
}

Panel agreement(const Runs& all) {
    return class_map(agreement_classes, rows_of(all), all.n_steps, [&](size_t row, size_t step) -> uint8_t {
        const auto& same = all.runs[row].agreement;
        return step >= same.size() ? Categories::none : same[step] != 0 ? 0 : 1;
    });
}

Figure two_panels(Panel curves, Panel map, size_t n_rows) {
    Figure figure;
    figure.name = "step-kl";
    figure.width_mm = 174;
    figure.rows = 2;
    figure.shared_x = true;
    figure.panel_height_mm = curves_height_mm;
    figure.row_heights = {curves_height_mm, height_of_rows(n_rows)};
    figure.panels.push_back(std::move(curves));
    figure.panels.push_back(std::move(map));
    return figure;
}

/// Removes the legend's markers if the curves have several steps, because such curves have no markers.
void drop_markers(std::vector<LegendEntry>& legend, size_t n_steps) {
    if (n_steps < 2) return;
    for (LegendEntry& entry : legend) entry.style.marker = Marker::none;
}

void add_classes(std::vector<LegendEntry>& legend, const std::vector<Categories::Class>& classes) {
    for (const auto& each : classes) legend.push_back({each.label, LegendEntry::Symbol::patch, {each.color}});
}

std::string left_out(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    const std::string labels = join_run_labels(read_runs({&part, 1}).left_out);
    return labels.empty() ? "" : labels + ": not compared with the full run";
}

Figure make(std::span<const TracePart> parts) {
    const Source source = source_from_name(parts.front().options.source);
    const Runs all = read_runs(parts);
    std::vector<ShownRun> shown;
    for (const Run& run : all.runs) shown.push_back(run.shown);
    Figure figure;
    if (source == Source::map) {
        figure = value_map(rows_of(all), all.n_steps, measure, false, [&](size_t row, size_t step) {
            const auto& kl = all.runs[row].kl;
            return step < kl.size() ? kl[step] : std::numeric_limits<float>::quiet_NaN();
        });
    } else {
        figure = two_panels(curves(all, source), agreement(all), all.runs.size());
        figure.legend = legend_of_runs(shown);
        drop_markers(figure.legend, all.n_steps);
        add_classes(figure.legend, agreement_classes);
    }
    figure.title = "Divergence from the full cache at each decode step";
    figure.caption =
        "Divergence KL(full || compressed) of the next-token distributions at each decode step. Both runs get the "
        "full run's answer as input.";
    if (source != Source::map) figure.caption += " Map below: whether both runs predict the same greedy token.";
    if (source == Source::logarithmic) figure.caption += " Values below 10⁻⁶ nats, including 0, are drawn at 10⁻⁶.";
    if (!all.left_out.empty())
        figure.caption += fmt::format(" Omitted because they were not compared: {}.", join_run_labels(all.left_out));
    complete_figure(figure, parts, shown);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    SubjectTable table(
        "step-kl", "Divergence from the full cache at each decode step",
        {SubjectKey::run, label_column(), SubjectKey::step, Column{"kl_nats", "KL", "nats", ColumnType::real, 4},
         Column{"agreement", "Agreement", "", ColumnType::integer}});
    const TracePart part{&reader, options};
    for (const Run& run : read_runs({&part, 1}).runs) {
        for (size_t step = 0; step < run.kl.size(); ++step) {
            table.add(Subject{.run = run.shown.index, .step = static_cast<int>(step)},
                      {run.shown.label, static_cast<double>(run.kl[step]), int64_t{run.agreement[step]}});
        }
    }
    return table.take();
}

/// A pair of compared runs, limited to the steps that both runs have.
struct Pair {
    ShownPair shown;
    Run a, b;
    size_t n_steps() const { return std::min(a.kl.size(), b.kl.size()); }
    double kl(size_t step) const { return static_cast<double>(a.kl[step]) - static_cast<double>(b.kl[step]); }
};

std::vector<Pair> read_pairs(std::span<const TracePart, 2> sides) {
    std::vector<Pair> pairs;
    for (const ShownPair& shown : shown_pairs(sides)) {
        auto a = read_run(shown.a);
        auto b = read_run(shown.b);
        if (a && b) pairs.push_back({shown, std::move(*a), std::move(*b)});
    }
    if (pairs.empty()) {
        throw NothingToShow(fmt::format("{} and {}: no pair of runs was compared with the full run at each decode step",
                                        sides[0].reader->path().string(), sides[1].reader->path().string()));
    }
    return pairs;
}

size_t most_steps(const std::vector<Pair>& pairs) {
    size_t n = 0;
    for (const Pair& pair : pairs) n = std::max(n, pair.n_steps());
    return n;
}

Panel difference_curves(const std::vector<Pair>& pairs) {
    Panel panel;
    panel.x = step_axis(most_steps(pairs));
    double farthest = 0;
    for (const Pair& pair : pairs) {
        Line line;
        line.label = pair.shown.label;
        line.subject = pair.shown.a.subject();
        line.style = pair.shown.a.style;
        line.style.width_pt = 0.8;
        if (pair.n_steps() > 1) line.style.marker = Marker::none;
        for (size_t step = 0; step < pair.n_steps(); ++step) {
            line.x.push_back(static_cast<double>(step));
            line.y.push_back(pair.kl(step));
            if (std::isfinite(line.y.back())) farthest = std::max(farthest, std::abs(line.y.back()));
        }
        panel.shapes.emplace_back(std::move(line));
    }
    panel.y = difference_axis(measure, measure_unit, std::max(farthest, least_divergence_nats));
    panel.shapes.emplace_back(zero_line());
    return panel;
}

const std::vector<Categories::Class> difference_classes = {{"both agree with full", agreement_color},
                                                           {"only A", {0x00, 0x9e, 0x73}},
                                                           {"only B", disagreement_color},
                                                           {"neither", {0x6e, 0x6e, 0x6e}}};

std::vector<MapRow> rows_of(const std::vector<Pair>& pairs) {
    std::vector<MapRow> rows;
    for (const Pair& pair : pairs) rows.push_back({pair.shown.label, pair.shown.a.subject()});
    return rows;
}

Panel difference_agreement(const std::vector<Pair>& pairs) {
    return class_map(difference_classes, rows_of(pairs), most_steps(pairs), [&](size_t row, size_t step) -> uint8_t {
        const auto& a = pairs[row].a.agreement;
        const auto& b = pairs[row].b.agreement;
        if (step >= a.size() || step >= b.size()) return Categories::none;
        return static_cast<uint8_t>((a[step] != 0 ? 0 : 2) + (b[step] != 0 ? 0 : 1));
    });
}

std::string difference_words() {
    return "Divergence from the full cache at each decode step, A − B, " + with_unit(measure, measure_unit);
}

Figure make_difference(std::span<const TracePart, 2> sides) {
    const std::vector<Pair> pairs = read_pairs(sides);
    std::vector<ShownPair> shown;
    for (const Pair& pair : pairs) shown.push_back(pair.shown);
    const bool is_map = source_from_name(sides[0].options.source) == Source::map;
    Figure figure;
    if (is_map) {
        figure = value_map(rows_of(pairs), most_steps(pairs), measure + ", A − B", true, [&](size_t row, size_t step) {
            return step < pairs[row].n_steps() ? static_cast<float>(pairs[row].kl(step))
                                               : std::numeric_limits<float>::quiet_NaN();
        });
    } else {
        figure = two_panels(difference_curves(pairs), difference_agreement(pairs), pairs.size());
        figure.legend = legend_of_pairs(sides, shown);
        drop_markers(figure.legend, most_steps(pairs));
        add_classes(figure.legend, difference_classes);
    }
    figure.title = difference_words();
    figure.panels.front().title = difference_title(sides, shown);
    figure.caption = fmt::format(
        "Divergence KL(full || compressed) of the next-token distributions at each decode step: each run of A ({}) "
        "minus the paired run of B ({}).",
        sides[0].name, sides[1].name);
    if (!is_map) figure.caption += " Map below: which of the two runs predicts the full run's greedy token.";
    complete_figure(figure, sides, shown);
    return figure;
}

Table difference_numbers(std::span<const TracePart, 2> sides) {
    SubjectTable table(
        "step-kl-difference", difference_words(),
        {SubjectKey::run_a, SubjectKey::run_b, label_column(), SubjectKey::step,
         Column{"unit", "Unit", "", ColumnType::text}, Column{"a", "A", "nats", ColumnType::real, 4},
         Column{"b", "B", "nats", ColumnType::real, 4}, Column{"difference", "A − B", "nats", ColumnType::real, 4},
         Column{"agreement_a", "Agreement A", "", ColumnType::integer},
         Column{"agreement_b", "Agreement B", "", ColumnType::integer}});
    const std::string unit = with_unit(measure, measure_unit);
    for (const Pair& pair : read_pairs(sides)) {
        SubjectPair of = pair.shown.subjects();
        for (size_t step = 0; step < pair.n_steps(); ++step) {
            of.a.step = of.b.step = static_cast<int>(step);
            table.add(
                of, {pair.shown.label, unit, static_cast<double>(pair.a.kl[step]), static_cast<double>(pair.b.kl[step]),
                     pair.kl(step), int64_t{pair.a.agreement[step]}, int64_t{pair.b.agreement[step]}});
        }
    }
    return table.take();
}

}  // namespace

FigureDefinition step_kl_figure() {
    FigureDefinition definition{
        "step-kl",
        "KL per step",
        "KL divergence of each run's predictions from the full run's predictions at each decode step, and the steps at "
        "which the greedy tokens differ",
        {{"runs", "runs, by label, policy or number; default: all except full"},
         {"source",
          "curves on a linear (default) or logarithmic axis, or a map of runs by steps",
          {"linear", "logarithmic", "map"}}},
        check,
        make_from_one_trace<make>,
        numbers,
        {},
        make,
        make_difference,
        difference_numbers};
    definition.left_out = left_out;
    return definition;
}

}  // namespace kvscope::analysis
