#include <fmt/format.h>

#include <algorithm>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/drawing/subject_columns.h"
#include "analysis/runs/missing_data.h"
#include "analysis/runs/run_choice.h"

namespace kvscope::analysis {
namespace {

constexpr int default_layers = 3;
constexpr size_t most_points = 1000;  // of a curve, so that files of long prompts stay small
constexpr double panel_mm = 28;

/// Attention to each token in one layer, of one query head or averaged over all heads.
struct Attention {
    int layer = 0;
    int head = -1;  ///< −1: the mean over all query heads
    std::vector<double> tokens;
};

void check(const trace::Reader& reader, const FigureOptions& options) {
    check_prompt(reader, options.prompt);
    require_data(reader, trace::Place::of_prompt(options.prompt), trace::schema::prompt::window_attention);
    chosen_layers(reader, options);
    chosen_heads(reader, options);
}

std::vector<int> shown_layers(const trace::Reader& reader, const FigureOptions& options) {
    std::vector<int> layers = chosen_layers(reader, options);
    if (!options.layers.empty()) return layers;
    std::vector<int> shown;
    for (const int i : evenly_spaced(static_cast<int>(layers.size()), default_layers))
        shown.push_back(layers[static_cast<size_t>(i)]);
    return shown;
}

std::vector<Attention> read_attention(const trace::Reader& reader, const FigureOptions& options) {
    check(reader, options);
    const auto n_heads = static_cast<size_t>(reader.model().n_heads);
    const auto n_tokens = static_cast<size_t>(reader.prompt(options.prompt).visible_tokens());
    const std::vector<int> heads = chosen_heads(reader, options);
    std::vector<Attention> all;
    for (const int layer : shown_layers(reader, options)) {
        const auto values = reader.window_attention(options.prompt, static_cast<size_t>(layer));  // (H, N)
        for (const int head : heads) {
            const auto row = values.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(head) * n_tokens);
            all.push_back({layer, head, {row, row + static_cast<std::ptrdiff_t>(n_tokens)}});
        }
        if (!heads.empty()) continue;
        Attention mean{layer, -1, std::vector<double>(n_tokens)};
        for (size_t i = 0; i < values.size(); ++i)
            mean.tokens[i % n_tokens] += static_cast<double>(values[i]) / static_cast<double>(n_heads);
        all.push_back(std::move(mean));
    }
    return all;
}

/// Returns a curve with the maximum of each `step` tokens.
Line curve(const Attention& attention, size_t step) {
    Line line;
    for (size_t begin = 0; begin < attention.tokens.size(); begin += step) {
        const auto first = attention.tokens.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last =
            attention.tokens.begin() + static_cast<std::ptrdiff_t>(std::min(begin + step, attention.tokens.size()));
        const auto largest = std::max_element(first, last);
        line.x.push_back(static_cast<double>(largest - attention.tokens.begin()));
        line.y.push_back(*largest);
    }
    line.style.width_pt = 0.7;
    return line;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const std::vector<Attention> all = read_attention(reader, options);
    const size_t n_tokens = all.front().tokens.size();
    const size_t step = (n_tokens + most_points - 1) / most_points;
    Figure figure;
    figure.name = "token-attention";
    figure.title = "Attention of the window's queries to each token";
    figure.rows = all.size();
    figure.shared_x = true;
    figure.panel_height_mm = panel_mm;
    for (const Attention& attention : all) {
        Panel panel;
        panel.row = figure.panels.size();
        panel.title = attention.head < 0 ? fmt::format("Layer {}, mean over heads", attention.layer)
                                         : fmt::format("Layer {}, head {}", attention.layer, attention.head);
        panel.subject = {.layer = attention.layer, .head = attention.head, .query_heads = attention.head >= 0};
        panel.x = token_axis(n_tokens);
        panel.y.title = "Attention";
        const double largest = *std::max_element(attention.tokens.begin(), attention.tokens.end());
        panel.y.max = largest > 0 ? 1.05 * largest : 1;
        panel.shapes.emplace_back(curve(attention, step));
        figure.panels.push_back(std::move(panel));
    }
    const trace::PromptAttributes& prompt = reader.prompt(options.prompt);
    figure.caption =
        fmt::format("Attention to each token of the prompt, averaged over the last {} queries.", prompt.window);
    if (step > 1) figure.caption += fmt::format(" A point is the largest value of {} tokens.", step);
    complete_figure(figure, reader, options, {});
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    SubjectTable table("token-attention", "Attention of the window's queries to each token",
                       {SubjectKey::layer, SubjectKey::head, SubjectKey::token,
                        Column{"attention", "Attention", "", ColumnType::real, 6}});
    for (const Attention& attention : read_attention(reader, options))
        for (size_t token = 0; token < attention.tokens.size(); ++token)
            table.add(Subject{.layer = attention.layer,
                              .head = attention.head,
                              .token = static_cast<int>(token),
                              .query_heads = attention.head >= 0},
                      {attention.tokens[token]});
    return table.take();
}

}  // namespace

FigureDefinition token_attention_figure() {
    return {"token-attention",
            "Attention by token",
            "Attention of the window's queries to each token of the prompt",
            {{"layers", "default: the first, a middle and the last"}, {"heads", "default: the mean over all heads"}},
            check,
            make,
            numbers,
            "K-VEC, Figure 2"};
}

}  // namespace kvscope::analysis
