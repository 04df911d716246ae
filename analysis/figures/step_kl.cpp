#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/color_map.h"
#include "analysis/figure_definition.h"
#include "analysis/run_choice.h"
#include "analysis/shown_runs.h"

namespace kvscope::analysis {
namespace {

using trace::Place;
namespace schema = trace::schema;

constexpr double kFloor = 1e-6;  // nats; smaller divergences are rounding
constexpr double kRowMm = 2.8;
constexpr Rgb kAgree{0xe4, 0xe4, 0xe4};
constexpr Rgb kDiffer{0xd5, 0x5e, 0x00};

enum class Source { linear, logarithmic };

Source source_from_name(const std::string& name) {
    if (name.empty() || name == "linear") return Source::linear;
    if (name == "logarithmic" || name == "log") return Source::logarithmic;
    throw FigureError(fmt::format("there is no source '{}' of KL per step; there are linear, logarithmic", name));
}

struct Run {
    ShownRun shown;
    std::vector<float> kl;
    std::vector<uint8_t> agreement;
};

struct Runs {
    std::vector<Run> runs;
    std::vector<ShownRun> left_out;  ///< that were not compared with the full cache
    size_t n_steps = 0;
};

Runs read_runs(std::span<const TracePart> parts) {
    Runs all;
    for (const ShownRun& shown : shown_runs(parts)) {
        const trace::Reader& reader = *shown.part->reader;
        const Place place = Place::of_run(shown.part->options.prompt, shown.index);
        if (!reader.has(place, schema::run::step_kl) || !reader.has(place, schema::run::step_agreement)) {
            all.left_out.push_back(shown);
            continue;
        }
        all.runs.push_back({shown, reader.read<float>(place, schema::run::step_kl),
                            reader.read<uint8_t>(place, schema::run::step_agreement)});
        all.n_steps = std::max(all.n_steps, all.runs.back().kl.size());
    }
    if (all.n_steps == 0) {
        throw NothingToShow(fmt::format("{}: none of the runs asked for was compared with the full cache step by step",
                                        parts.front().reader->path().string()));
    }
    return all;
}

Axis step_axis(size_t n_steps) {
    Axis axis;
    axis.title = "Decode step";
    axis.min = -0.5;
    axis.max = static_cast<double>(n_steps) - 0.5;
    axis.whole_numbers = true;
    return axis;
}

Panel curves(const Runs& all, Source source) {
    Panel panel;
    panel.x = step_axis(all.n_steps);
    panel.y.title = "KL to the full cache";
    panel.y.unit = "nats";
    double largest = 0;
    for (const Run& run : all.runs) {
        Line line;
        line.label = run.shown.label;
        line.style = run.shown.style;
        line.style.width_pt = 0.8;
        if (run.kl.size() > 1) line.style.marker = Marker::none;
        for (size_t step = 0; step < run.kl.size(); ++step) {
            const auto value = static_cast<double>(run.kl[step]);
            line.x.push_back(static_cast<double>(step));
            line.y.push_back(source == Source::logarithmic && !std::isnan(value) ? std::max(value, kFloor) : value);
            if (std::isfinite(value)) largest = std::max(largest, value);
        }
        panel.layers.emplace_back(std::move(line));
    }
    if (source == Source::logarithmic) {
        panel.y.scale = Scale::logarithmic;
        panel.y.min = kFloor;
        panel.y.max = std::max(largest * 1.5, kFloor * 10);
    } else {
        panel.y.min = 0;
        panel.y.max = std::max(largest * 1.06, kFloor);
    }
    return panel;
}

/// (runs, steps): whether both would draw the same greedy token.
Panel agreement(const Runs& all) {
    Panel panel;
    panel.row = 1;
    panel.x = step_axis(all.n_steps);
    panel.y.min = -0.5;
    panel.y.max = static_cast<double>(all.runs.size()) - 0.5;
    panel.y.reversed = true;
    Categories map;
    map.rows = all.runs.size();
    map.columns = all.n_steps;
    map.classes = {{"same greedy token", kAgree}, {"another token", kDiffer}};
    for (size_t i = 0; i < all.runs.size(); ++i) {
        const Run& run = all.runs[i];
        panel.y.ticks.push_back({static_cast<double>(i), run.shown.label});
        for (size_t step = 0; step < all.n_steps; ++step) {
            map.ids.push_back(step >= run.agreement.size() ? Categories::none : run.agreement[step] != 0 ? 0 : 1);
        }
    }
    map.x_begin = panel.x.min;
    map.x_end = panel.x.max;
    map.y_begin = panel.y.min;
    map.y_end = panel.y.max;
    panel.layers.emplace_back(std::move(map));
    return panel;
}

Figure make(std::span<const TracePart> parts) {
    const Source source = source_from_name(parts.front().options.source);
    const Runs all = read_runs(parts);
    std::vector<ShownRun> shown;
    for (const Run& run : all.runs) shown.push_back(run.shown);
    Figure figure;
    figure.name = "step-kl";
    figure.title = "Divergence from the full cache at each decode step";
    figure.width_mm = 174;
    figure.rows = 2;
    figure.shared_x = true;
    figure.panel_height_mm = std::clamp(kRowMm * static_cast<double>(all.runs.size()), 40.0, 90.0);
    figure.panels.push_back(curves(all, source));
    figure.panels.push_back(agreement(all));
    figure.legend = legend_of(shown);
    for (const auto& [label, color] : {std::pair{"same greedy token", kAgree}, {"another token", kDiffer}}) {
        figure.legend.push_back({label, LegendEntry::Symbol::patch, {color}});
    }
    figure.caption =
        "Divergence KL(full || compressed) of the next token's distribution at each step, both fed the full run's "
        "tokens; below, whether both would draw the same greedy token.";
    if (!all.left_out.empty())
        figure.caption += fmt::format(" Not compared and left out: {}.", labels_of(all.left_out));
    complete_figure(figure, parts, shown);
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    Table table;
    table.name = "step-kl";
    table.title = "Divergence from the full cache at each decode step";
    table.columns = {{"run", "Run", "", ColumnType::integer},
                     {"label", "Label", "", ColumnType::text},
                     {"step", "Step", "", ColumnType::integer},
                     {"kl_nats", "KL", "nats", ColumnType::real, 4},
                     {"agreement", "Agreement", "", ColumnType::integer}};
    const TracePart part{&reader, options};
    for (const Run& run : read_runs({&part, 1}).runs) {
        for (size_t step = 0; step < run.kl.size(); ++step) {
            table.rows.push_back({{int64_t{run.shown.index}, run.shown.label, static_cast<int64_t>(step),
                                   static_cast<double>(run.kl[step]), int64_t{run.agreement.at(step)}}});
        }
    }
    return table;
}

}  // namespace

FigureDefinition step_kl_figure() {
    return {"step-kl",
            "KL per step",
            "How far each run's next-token distribution is from the full cache's at each decode step, and where the "
            "greedy token differs",
            {{"runs", "labels, policies or numbers of runs; default: all but full"},
             {"source", "linear (default) or logarithmic: the axis of KL", {"linear", "logarithmic"}}},
            of_one_trace<make>,
            numbers,
            {},
            make};
}

}  // namespace kvscope::analysis
