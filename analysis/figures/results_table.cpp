#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/results/results_figure.h"
#include "analysis/results/summary_drawing.h"
#include "analysis/results/summary_options.h"
#include "analysis/results/summary_table.h"
#include "analysis/runs/shown_runs.h"
#include "analysis/tables/table_format.h"

namespace kvscope::analysis {
namespace {

constexpr double row_mm = 4.5;
constexpr double least_column_mm = 16;
constexpr double character_mm = 1.3;
constexpr double names_mm = 12;  // in addition to the characters of the longest name
constexpr double page_mm = 174;

/// Returns the number of a cell; NaN if the cell has none.
double number_of(const Cell& cell) {
    if (const auto* mean = std::get_if<Shared<MeanCell>>(&cell)) return (*mean)->mean;
    const auto* real = std::get_if<double>(&cell);
    return real ? *real : NAN;
}

std::string text_of(const Cell& cell, int decimals, bool with_interval) {
    if (const auto* mean = std::get_if<Shared<MeanCell>>(&cell)) {
        MeanCell shown = **mean;
        if (!with_interval) shown.low = shown.high = NAN;
        return format_mean(shown, decimals);
    }
    if (const auto* real = std::get_if<double>(&cell)) return format_real(*real, decimals);
    if (const auto* whole = std::get_if<int64_t>(&cell)) return format_count(*whole);
    const auto* text = std::get_if<SharedText>(&cell);
    return text ? text->string() : "";
}

size_t longest(const Table& table, size_t n_leading, int decimals, bool with_interval) {
    size_t most = 0;
    for (const Row& row : table.rows)
        for (size_t i = n_leading; i < row.cells.size(); ++i)
            most = std::max(most, text_of(row.cells[i], decimals, with_interval).size());
    return most;
}

ColorScale color_scale_of(const Table& table, size_t n_leading, const Summary& summary) {
    ColorScale scale;
    scale.title = summary.scalar->title;
    scale.unit = summary.unit();
    scale.min = INFINITY;
    scale.max = -INFINITY;
    for (const Row& row : table.rows)
        for (size_t i = n_leading; i < row.cells.size(); ++i) {
            const double number = number_of(row.cells[i]);
            if (std::isnan(number)) continue;
            scale.min = std::min(scale.min, number);
            scale.max = std::max(scale.max, number);
        }
    if (!(scale.min < scale.max)) scale.max = scale.min + (scale.min > 0 ? scale.min : 1);
    return scale;
}

std::string caption_of(const Summary& summary) {
    return fmt::format("{}. Bold: best of a column, underlined: second best, without the full run. {}",
                       title_of_summary(summary), summary.note());
}

/// Returns "n = 6; 4 comparisons".
std::string short_note(const Summary& summary) {
    size_t least = SIZE_MAX, most = 0;
    for (const SummaryCell& cell : summary.cells) {
        if (!cell.estimate) continue;
        least = std::min(least, cell.estimate->n);
        most = std::max(most, cell.estimate->n);
    }
    std::string text = least == most ? fmt::format("n = {}", most) : fmt::format("n = {} to {}", least, most);
    if (!summary.against.empty()) text += fmt::format("; {} comparisons", summary.n_comparisons);
    for (size_t i = 0; i < summary.mixed.size(); ++i)
        text += (i == 0 ? "; differs: " : ", ") + summary.mixed[i].substr(0, summary.mixed[i].find(" ("));
    return text;
}

Figure make(std::span<const TracePart> parts) {
    const Summary summary = chosen_summary(parts);
    const Table table = summary_table(summary);
    const auto ranks = ranks_of_cells(table);
    const size_t n_leading = summary.row_settings.size() + (summary.block_setting ? 1 : 0);
    const int decimals = table.columns.at(n_leading).decimals;
    const size_t n_columns = table.columns.size() - n_leading;

    Figure figure;
    figure.name = "results-table";
    figure.title = fmt::format("{} over samples", summary.scalar->title);
    figure.color_scales.push_back(color_scale_of(table, n_leading, summary));
    const ColorScale& scale = figure.color_scales.front();
    std::vector<std::string> column_names;
    for (size_t i = n_leading; i < table.columns.size(); ++i) column_names.push_back(table.columns[i].title);
    std::vector<std::string> row_names;
    size_t longest_name = 0;
    for (size_t row = 0; row < summary.rows.size(); ++row) {
        row_names.push_back(summary.row_label(row));
        longest_name = std::max(longest_name, row_names.back().size());
    }
    const double name_mm = names_mm + character_mm * static_cast<double>(longest_name);
    const auto width_with = [&](bool with_interval) {
        const auto n = static_cast<double>(longest(table, n_leading, decimals, with_interval));
        return name_mm + static_cast<double>(n_columns) * std::max(least_column_mm, character_mm * (n + 2));
    };
    const bool with_interval = width_with(true) <= page_mm;  // otherwise, only means fit into the page

    size_t line = 0;  // row of the table
    for (size_t block = 0; block < summary.blocks.size(); ++block) {
        Panel panel = panel_of_block(summary, block, 1);
        if (block == 0) panel.note = short_note(summary);
        panel.x = name_axis(summary.column_setting ? summary.column_setting->title : "", column_names, false);
        if (summary.column_setting) panel.x.unit = summary.column_setting->unit;
        panel.y = name_axis("", row_names, true);
        HeatMap map = map_of_means(summary.rows.size(), n_columns);
        std::vector<TextLabel> labels;
        for (size_t row = 0; row < summary.rows.size(); ++row) {
            bool has_rows = false;
            for (size_t column = 0; column < summary.columns.size(); ++column)
                has_rows = has_rows || summary.cell(block, row, column).has_rows;
            if (!has_rows) continue;  // as in summary_table()
            for (size_t column = 0; column < n_columns; ++column) {
                const Cell& cell = table.rows[line].cells[n_leading + column];
                const Rank rank = ranks[line][n_leading + column];
                const double number = number_of(cell);
                TextLabel label{static_cast<double>(column),
                                static_cast<double>(row),
                                text_of(cell, decimals, with_interval),
                                {90, 90, 90}};
                if (!std::isnan(number)) {
                    map.values[row * n_columns + column] = static_cast<float>(number);
                    label.color = ink_on(
                        color_at(scale.map, std::clamp((number - scale.min) / (scale.max - scale.min), 0.0, 1.0)));
                }
                label.bold = rank == Rank::best;
                label.underlined = rank == Rank::second;
                if (!label.text.empty()) labels.push_back(std::move(label));
            }
            ++line;
        }
        panel.shapes.emplace_back(std::move(map));
        for (TextLabel& label : labels) panel.shapes.emplace_back(std::move(label));
        figure.panels.push_back(std::move(panel));
    }
    arrange_blocks(figure, summary, 1);
    figure.shared_x = true;
    figure.panel_height_mm = row_mm * static_cast<double>(summary.rows.size());
    figure.width_mm = std::clamp(width_with(with_interval), 84.0, page_mm);
    figure.caption = caption_of(summary);
    if (!with_interval) figure.caption += " The intervals are in the exported table.";
    complete_figure(figure, parts, {});
    return figure;
}

Table numbers(std::span<const TracePart> parts) {
    Table table = summary_numbers(chosen_summary(parts));
    table.name = "results-table";
    return table;
}

}  // namespace

FigureDefinition results_table_figure() {
    return of_results<make, numbers>(
        {"results-table", "Table of results",
         "Means over prompts or task samples with 95 % intervals, by policy and budget or by other settings",
         summary_table_options(), check_summary});
}

}  // namespace kvscope::analysis
