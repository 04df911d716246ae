#include "analysis/results/summary_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/runs/run_style.h"
#include "common/lower_case.h"

namespace kvscope::analysis {

std::string title_of_summary(const Summary& summary) {
    std::string rows;
    for (const Setting& setting : summary.row_settings) rows += (rows.empty() ? "" : ", ") + setting.name;
    return fmt::format("{} by {}{}{}", summary.scalar->title, rows,
                       summary.column_setting ? " and " + summary.column_setting->name : "",
                       summary.block_setting ? ", for each " + summary.block_setting->name : "");
}

std::vector<LineStyle> styles_of_rows(const Summary& summary, std::span<const Result> results) {
    std::map<std::string, const Result*> run_of_row;  // the first one, by the row's labels
    for (const Result& result : results) {
        std::string key;
        for (const Setting& setting : summary.row_settings) key += setting.value(result).label + '\n';
        run_of_row.try_emplace(key, &result);
    }
    const auto has = [&](std::string_view name) {
        return std::ranges::find(summary.row_settings, name, &Setting::name) != summary.row_settings.end();
    };
    std::vector<trace::RunAttributes> looks;
    for (const auto& values : summary.rows) {
        std::string key;
        for (const SettingValue& value : values) key += value.label + '\n';
        const auto run = run_of_row.find(key);
        auto& look = looks.emplace_back();
        look.policy = key;
        if (run == run_of_row.end() || !has("policy")) continue;
        look.policy = run->second->row.policy;
        look.parameters_json = run->second->setting;
        if (has("budget")) look.budget = run->second->row.budget;
    }
    return run_styles(looks);
}

std::optional<Estimate> drawn_estimate(const Summary& summary, const SummaryCell& cell) {
    std::optional<Estimate> estimate = cell.estimate;
    if (!estimate || !summary.in_percent) return estimate;
    for (double* number :
         {&estimate->mean, &estimate->median, &estimate->value, &estimate->interval.low, &estimate->interval.high})
        *number *= 100;
    return estimate;
}

Panel panel_of_block(const Summary& summary, std::size_t block, std::size_t n_columns) {
    Panel panel;
    panel.row = block / n_columns;
    panel.column = block % n_columns;
    if (!summary.block_setting) return panel;
    const std::string &title = summary.block_setting->title, &label = summary.blocks[block].label;
    panel.title = lower_case(label).ends_with(lower_case(title)) ? label : title + " " + label;  // "8 new tokens"
    return panel;
}

void arrange_blocks(Figure& figure, const Summary& summary, std::size_t n_columns) {
    figure.columns = std::min(summary.blocks.size(), n_columns);
    figure.rows = (summary.blocks.size() + n_columns - 1) / n_columns;
}

}  // namespace kvscope::analysis
