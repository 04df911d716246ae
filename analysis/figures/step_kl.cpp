#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/color_map.h"
#include "analysis/figure_definition.h"
#include "analysis/run_choice.h"
#include "analysis/run_style.h"

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
    int index = 0;
    std::vector<float> kl;
    std::vector<uint8_t> agreement;
};

struct Runs {
    std::vector<Run> runs;
    std::vector<int> left_out;  ///< that were not compared with the full cache
    size_t n_steps = 0;
};

Runs read_runs(const trace::Reader& reader, const FigureOptions& options) {
    Runs all;
    for (const int j : chosen_runs(reader, options)) {
        const Place place = Place::of_run(options.prompt, j);
        if (!reader.has(place, schema::run::step_kl) || !reader.has(place, schema::run::step_agreement)) {
            all.left_out.push_back(j);
            continue;
        }
        all.runs.push_back({j, reader.read<float>(place, schema::run::step_kl),
                            reader.read<uint8_t>(place, schema::run::step_agreement)});
        all.n_steps = std::max(all.n_steps, all.runs.back().kl.size());
    }
    if (all.n_steps == 0) {
        throw NothingToShow(fmt::format("{}: none of the runs asked for was compared with the full cache step by step",
                                        reader.path().string()));
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

Panel curves(const Runs& all, const std::vector<trace::RunAttributes>& attributes, Source source) {
    const std::vector<LineStyle> styles = run_styles(attributes);
    Panel panel;
    panel.x = step_axis(all.n_steps);
    panel.y.title = "KL to the full cache";
    panel.y.unit = "nats";
    double largest = 0;
    for (const Run& run : all.runs) {
        const auto j = static_cast<size_t>(run.index);
        Line line;
        line.label = run_label(attributes[j]);
        line.style = styles[j];
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
Panel agreement(const Runs& all, const std::vector<trace::RunAttributes>& attributes) {
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
        panel.y.ticks.push_back({static_cast<double>(i), run_label(attributes[static_cast<size_t>(run.index)])});
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

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const Source source = source_from_name(options.source);
    const Runs all = read_runs(reader, options);
    const std::vector<trace::RunAttributes>& attributes = reader.runs(options.prompt);
    std::vector<int> indices;
    for (const Run& run : all.runs) indices.push_back(run.index);
    Figure figure;
    figure.name = "step-kl";
    figure.title = "Divergence from the full cache at each decode step";
    figure.width_mm = 174;
    figure.rows = 2;
    figure.shared_x = true;
    figure.panel_height_mm = std::clamp(kRowMm * static_cast<double>(all.runs.size()), 40.0, 90.0);
    figure.panels.push_back(curves(all, attributes, source));
    figure.panels.push_back(agreement(all, attributes));
    figure.legend = run_legend(attributes, indices);
    for (const auto& [label, color] : {std::pair{"same greedy token", kAgree}, {"another token", kDiffer}}) {
        figure.legend.push_back({label, LegendEntry::Symbol::patch, {color}});
    }
    figure.caption =
        "Divergence KL(full || compressed) of the next token's distribution at each step, both fed the full run's "
        "tokens; below, whether both would draw the same greedy token.";
    if (!all.left_out.empty()) {
        std::vector<std::string> names;
        for (const int run : all.left_out) names.push_back(run_label(attributes[static_cast<size_t>(run)]));
        figure.caption += fmt::format(" Not compared and left out: {}.", fmt::join(names, ", "));
    }
    complete_figure(figure, reader, options, indices);
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
    for (const Run& run : read_runs(reader, options).runs) {
        const std::string label = run_label(reader.run(options.prompt, run.index));
        for (size_t step = 0; step < run.kl.size(); ++step) {
            table.rows.push_back({{int64_t{run.index}, label, static_cast<int64_t>(step),
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
            make,
            numbers};
}

}  // namespace kvscope::analysis
