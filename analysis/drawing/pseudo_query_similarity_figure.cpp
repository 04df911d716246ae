#include "analysis/drawing/pseudo_query_similarity_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "analysis/measures/five_numbers.h"

namespace kvscope::analysis {
namespace {

constexpr double prompt_lane_mm = 2.2;    // width for one prompt in one condition, after or before RoPE
constexpr double condition_gap_mm = 1.6;  // gap between conditions
constexpr Rgb any_prompt_color{90, 90, 90};

struct Side {
    const char* name;
    std::vector<double> PseudoQueries::*values;
    Dash dash;
    Marker marker;
    bool is_filled;
};

constexpr Side rope_sides[] = {{"after RoPE", &PseudoQueries::after_rope, Dash::solid, Marker::circle, true},
                               {"before RoPE", &PseudoQueries::before_rope, Dash::dashed, Marker::square, false}};

bool is_in_place(const PromptQueries& prompt, const PseudoQueries& one) {
    return one.drawn_below == 0 && one.start == prompt.n_tokens;
}

std::string condition_of(const PromptQueries& prompt, const PseudoQueries& one) {
    return fmt::format("{} & {}", one.same_content ? "SC" : "DC", is_in_place(prompt, one) ? "SP" : "DP");
}

double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

/// Returns a condition's label: DapQ's abbreviations, then content and start position if the answer has other ones.
std::string label_of(const PromptQueries& prompt, const PseudoQueries& one) {
    std::string label = condition_of(prompt, one);
    if (!one.same_content) label += ", " + one.content;
    if (is_in_place(prompt, one)) return label;
    if (one.drawn_below == 0) return label + fmt::format(", from {}", one.start);
    return label +
           (one.drawn_below == prompt.n_tokens ? ", random" : fmt::format(", random below {}", one.drawn_below));
}

/// Colors distinguish the prompts or, for a single prompt, the values after and before RoPE.
LineStyle style_of(size_t prompt, size_t side, size_t n_prompts) {
    const auto colors = okabe_ito();
    const size_t color = n_prompts == 1 ? side : prompt;
    return {colors[color % colors.size()], rope_sides[side].dash, rope_sides[side].marker, 1.0};
}

void add_box(Panel& panel, const std::string& label, const std::vector<double>& values, double y, double half,
             LineStyle style, bool is_filled) {
    const FiveNumbers five = five_numbers(values);
    style.dash = Dash::solid;
    style.marker = Marker::none;
    style.width_pt = 0.7;
    Line box{label,
             {five.lower_quartile, five.upper_quartile, five.upper_quartile, five.lower_quartile, five.lower_quartile},
             {y - half, y - half, y + half, y + half, y - half},
             {},
             {},
             style};
    if (is_filled) {
        LineStyle none = style;
        none.width_pt = 0;
        panel.shapes.emplace_back(Line{label,
                                       {five.lower_quartile, five.upper_quartile},
                                       {NAN, NAN},
                                       {y - half, y - half},
                                       {y + half, y + half},
                                       none});
    }
    panel.shapes.emplace_back(std::move(box));
    panel.shapes.emplace_back(Line{
        label, {five.min, five.lower_quartile, NAN, five.upper_quartile, five.max}, {y, y, NAN, y, y}, {}, {}, style});
    const double cap = half / 2;
    panel.shapes.emplace_back(Line{label,
                                   {five.min, five.min, NAN, five.max, five.max},
                                   {y - cap, y + cap, NAN, y - cap, y + cap},
                                   {},
                                   {},
                                   style});
    style.width_pt = 1.6;
    panel.shapes.emplace_back(Line{label, {five.median, five.median}, {y - half, y + half}, {}, {}, style});
}

Panel conditions(std::span<const PromptQueries> prompts) {
    Panel panel;
    panel.title = "Content and position of the pseudo tokens";
    const auto& first = prompts.front().conditions;
    panel.y.min = -0.5;
    panel.y.max = static_cast<double>(first.size()) - 0.5;
    panel.y.reversed = true;
    const double lane_mm = prompt_lane_mm * static_cast<double>(2 * prompts.size());
    const double lanes = lane_mm / (lane_mm + condition_gap_mm);  // as a share of a condition's unit
    const double lane = lanes / static_cast<double>(2 * prompts.size());
    for (size_t i = 0; i < first.size(); ++i) {
        const auto y = static_cast<double>(i);
        panel.y.ticks.push_back({y, label_of(prompts.front(), first[i])});
        for (size_t p = 0; p < prompts.size(); ++p) {
            for (size_t side = 0; side < std::size(rope_sides); ++side) {
                const auto& values = prompts[p].conditions.at(i).*rope_sides[side].values;
                const double at = y - lanes / 2 + lane * (static_cast<double>(2 * p + side) + 0.5);
                const LineStyle style = style_of(p, side, prompts.size());
                const std::string label = fmt::format("{}, {}", prompts[p].prompt, rope_sides[side].name);
                if (values.size() > 1)
                    add_box(panel, label, values, at, 0.36 * lane, style, rope_sides[side].is_filled);
                else
                    panel.shapes.emplace_back(Scatter{label, {values.at(0)}, {at}, style.marker, 3.6, style.color});
            }
        }
    }
    return panel;
}

Panel curves(std::span<const PromptQueries> prompts) {
    Panel panel;
    panel.column = 1;
    panel.title = "The answer's own tokens at earlier positions";
    panel.x.title = "Distance to the answer's position";
    panel.x.unit = "tokens";
    panel.x.whole_numbers = true;
    double farthest = 1;
    for (size_t p = 0; p < prompts.size(); ++p) {
        for (size_t side = 0; side < std::size(rope_sides); ++side) {
            Line line;
            line.label = fmt::format("{}, {}", prompts[p].prompt, rope_sides[side].name);
            line.style = style_of(p, side, prompts.size());
            for (const PseudoQueries& one : prompts[p].curve) {
                line.x.push_back(static_cast<double>(prompts[p].n_tokens - one.start));
                line.y.push_back(mean_of(one.*rope_sides[side].values));
                farthest = std::max(farthest, line.x.back());
            }
            panel.shapes.emplace_back(std::move(line));
        }
    }
    panel.x.min = -0.03 * farthest;
    panel.x.max = 1.03 * farthest;
    return panel;
}

Axis similarity_axis(std::span<const PromptQueries> prompts) {
    double least = 1;
    for (const PromptQueries& prompt : prompts) {
        for (const auto* group : {&prompt.conditions, &prompt.curve}) {
            for (const PseudoQueries& one : *group) {
                for (const Side& side : rope_sides) {
                    const auto& values = one.*side.values;
                    least = std::min(least, *std::min_element(values.begin(), values.end()));
                }
            }
        }
    }
    Axis axis;
    axis.title = "Cosine with the true queries";
    axis.min = std::floor(10 * least - 0.2) / 10;
    axis.max = 1.03;
    return axis;
}

std::vector<Cell> cells_of(const PromptQueries& prompt, const PseudoQueries& one) {
    std::vector<Cell> cells = {
        prompt.prompt,
        prompt.n_tokens,
        condition_of(prompt, one),
        one.content,
        one.drawn_below > 0 ? fmt::format("{} of 0–{}", prompt.n_answer, std::max(one.drawn_below, prompt.n_answer) - 1)
                            : fmt::format("{}–{}", one.start, one.start + prompt.n_answer - 1),
        static_cast<int64_t>(one.after_rope.size())};
    std::vector<Cell> boxes;
    for (const Side& side : rope_sides) {
        const auto& values = one.*side.values;
        cells.emplace_back(mean_of(values));
        if (values.size() < 2) {
            boxes.resize(boxes.size() + 5);
            continue;
        }
        const FiveNumbers five = five_numbers(values);
        boxes.insert(boxes.end(), {five.min, five.lower_quartile, five.median, five.upper_quartile, five.max});
    }
    cells.insert(cells.end(), boxes.begin(), boxes.end());
    return cells;
}

}  // namespace

Table pseudo_query_table(std::span<const PromptQueries> prompts) {
    Table table;
    table.name = "queries";
    table.title =
        "Cosine between the queries of pseudo tokens and of the true answer, mean over tokens, heads and layers";
    table.columns = {{"prompt", "Prompt", "", ColumnType::text},
                     {"n_tokens", "Tokens", "", ColumnType::integer},
                     {"condition", "Condition", "", ColumnType::text},
                     {"content", "Content", "", ColumnType::text},
                     {"positions", "Positions", "", ColumnType::text},
                     {"trials", "Trials", "", ColumnType::integer},
                     {"after_rope", "After RoPE", "", ColumnType::real, 4},
                     {"before_rope", "Before RoPE", "", ColumnType::real, 4}};
    for (const char* rope : {"after", "before"}) {
        for (const char* number : {"min", "q1", "median", "q3", "max"})
            table.columns.push_back(
                {fmt::format("{}_{}", rope, number), fmt::format("{} {}", rope, number), "", ColumnType::real, 4});
    }
    for (const PromptQueries& prompt : prompts) {
        for (const PseudoQueries& one : prompt.conditions) table.rows.push_back({cells_of(prompt, one)});
        for (const PseudoQueries& one : prompt.curve) table.rows.push_back({cells_of(prompt, one)});
    }
    return table;
}

Figure pseudo_query_figure(std::span<const PromptQueries> prompts) {
    if (prompts.empty() || prompts.front().conditions.empty())
        throw std::invalid_argument("a figure of pseudo-token queries needs at least one condition");
    const bool has_curve = !prompts.front().curve.empty();
    Figure figure;
    figure.name = "queries";
    figure.title = "Pseudo-token queries by content and position";
    figure.caption =
        "Cosine between the queries of pseudo tokens and the queries of the full run's answer, mean over tokens, query "
        "heads and layers, after and before RoPE. SC: the answer's own tokens; DC: other tokens; SP: the answer's "
        "positions; DP: other positions. Boxes show minimum, quartiles, median and maximum of the random trials.";
    if (has_curve) figure.caption += " Right panel: the answer's own tokens at earlier positions.";
    Panel left = conditions(prompts);
    left.x = similarity_axis(prompts);
    const auto n = static_cast<double>(left.y.ticks.size());
    figure.panel_height_mm =
        std::max(42.0, n * (condition_gap_mm + prompt_lane_mm * static_cast<double>(2 * prompts.size())));
    figure.width_mm = 120;
    figure.panels.push_back(std::move(left));
    if (has_curve) {
        Panel right = curves(prompts);
        right.y = similarity_axis(prompts);
        figure.columns = 2;
        figure.width_mm = 174;
        figure.panels.push_back(std::move(right));
    }
    for (size_t p = 0; prompts.size() > 1 && p < prompts.size(); ++p) {
        LineStyle style = style_of(p, 0, prompts.size());
        style.marker = Marker::none;
        figure.legend.push_back(
            {fmt::format("{} ({} tokens)", prompts[p].prompt, prompts[p].n_tokens), LegendEntry::Symbol::line, style});
    }
    for (size_t side = 0; side < std::size(rope_sides); ++side) {
        LineStyle style = style_of(0, side, prompts.size());
        if (prompts.size() > 1) style.color = any_prompt_color;
        figure.legend.push_back({rope_sides[side].name, LegendEntry::Symbol::line, style});
    }
    return figure;
}

}  // namespace kvscope::analysis
