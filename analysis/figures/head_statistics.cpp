#include "analysis/measures/head_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/runs/missing_data.h"
#include "analysis/runs/run_choice.h"

namespace kvscope::analysis {
namespace {

constexpr double head_mm = 3.2;
constexpr double most_panel_mm = 90;

struct Statistics {
    std::vector<int> layers;
    size_t n_heads = 0;                                  ///< number of KV heads
    std::vector<std::vector<HeadStatistics>> of_layers;  ///< statistics of the KV heads (G) in each of `layers`
};

void check(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    require_data(reader, trace::Place::of_prompt(options.prompt), trace::schema::prompt::window_attention);
    const trace::PromptAttributes& prompt = reader.prompt(options.prompt);
    if (prompt.visible_tokens() <= prompt.window) {
        throw NothingToShow(fmt::format("{}: prompt {} has {} tokens, no more than its window of {}",
                                        reader.path().string(), options.prompt, prompt.visible_tokens(),
                                        prompt.window));
    }
    chosen_layers(reader, options);
}

Statistics read_statistics(const trace::Reader& reader, const FigureOptions& options) {
    check(reader, options);
    const trace::ModelAttributes& model = reader.model();
    const trace::PromptAttributes& prompt = reader.prompt(options.prompt);
    Statistics statistics{chosen_layers(reader, options), static_cast<size_t>(model.n_kv_heads), {}};
    for (const int layer : statistics.layers) {
        statistics.of_layers.push_back(head_statistics(
            reader.window_attention(options.prompt, static_cast<size_t>(layer)), static_cast<size_t>(model.n_heads),
            statistics.n_heads, static_cast<size_t>(prompt.window)));
    }
    return statistics;
}

void add_map(Figure& figure, const Statistics& statistics, const std::string& title, const std::string& unit,
             double HeadStatistics::*number) {
    HeatMap map;
    set_map_extent(map, statistics.n_heads, statistics.layers.size());
    for (size_t head = 0; head < map.rows; ++head) {
        for (const auto& layer : statistics.of_layers) map.values.push_back(static_cast<float>(layer[head].*number));
    }
    map.color_scale = figure.color_scales.size();
    map.reduction = Reduction::mean;
    ColorScale scale;
    scale.title = title;
    scale.unit = unit;
    scale.max = static_cast<double>(*std::max_element(map.values.begin(), map.values.end()));
    if (!(scale.max > 0)) scale.max = 1;
    figure.color_scales.push_back(scale);
    Panel panel;
    panel.row = figure.panels.size();
    panel.title = title;
    panel.x = layer_axis(statistics.layers);
    panel.y = head_axis(map.rows, false);
    panel.y.reversed = true;
    panel.shapes.emplace_back(std::move(map));
    figure.panels.push_back(std::move(panel));
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const Statistics statistics = read_statistics(reader, options);
    Figure figure;
    figure.name = "head-statistics";
    figure.title = "Focus of each KV head's window attention";
    figure.rows = 2;
    figure.shared_x = true;
    figure.panel_height_mm = std::clamp(head_mm * static_cast<double>(statistics.n_heads), 8.0, most_panel_mm);
    add_map(figure, statistics, "Standard deviation", "", &HeadStatistics::deviation);
    add_map(figure, statistics, "Entropy", "nats", &HeadStatistics::entropy);
    const trace::PromptAttributes& prompt = reader.prompt(options.prompt);
    const int64_t n_prefix = prompt.visible_tokens() - prompt.window;
    figure.caption = fmt::format(
        "Standard deviation and entropy of the attention to the {} prompt tokens before the window, averaged over the "
        "last "
        "{} queries, by KV head and layer. Uniform attention has a standard deviation of 0 and an entropy of {:.2f} "
        "nats.",
        n_prefix, prompt.window, std::log(static_cast<double>(n_prefix)));
    complete_figure(figure, reader, options, {});
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    const Statistics statistics = read_statistics(reader, options);
    SubjectTable table(
        "head-statistics", "Standard deviation and entropy of each KV head's window attention",
        {SubjectKey::layer, SubjectKey::head, Column{"deviation", "Standard deviation", "", ColumnType::real, 6},
         Column{"entropy_nats", "Entropy", "nats", ColumnType::real}});
    for (size_t i = 0; i < statistics.layers.size(); ++i) {
        for (size_t head = 0; head < statistics.n_heads; ++head) {
            const HeadStatistics& of_head = statistics.of_layers[i][head];
            table.add(Subject{.layer = statistics.layers[i], .head = static_cast<int>(head)},
                      {of_head.deviation, of_head.entropy});
        }
    }
    return table.take();
}

}  // namespace

FigureDefinition head_statistics_figure() {
    return {"head-statistics",
            "Head statistics",
            "Standard deviation and entropy of each KV head's window attention, which measure how focused the head is",
            {{"layers", "default: all"}},
            check,
            make,
            numbers};
}

}  // namespace kvscope::analysis
