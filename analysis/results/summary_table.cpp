#include "analysis/results/summary_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>

#include "analysis/results/verdicts.h"

namespace kvscope::analysis {
namespace {

Column real_column(const Scalar& scalar, std::string name, std::string title) {
    return {std::move(name), std::move(title), std::string(scalar.unit), ColumnType::real, scalar.decimals};
}

/// Returns "KL (nats)".
std::string titled(const Summary& summary) {
    const std::string unit = summary.unit();
    return unit.empty() ? std::string(summary.scalar->title) : fmt::format("{} ({})", summary.scalar->title, unit);
}

/// Converts the fractions of a column to per cent.
void convert_to_percent(Table& table, size_t column) {
    table.columns[column].unit = "%";
    table.columns[column].decimals -= 2;
    for (Row& row : table.rows) {
        if (auto* real = std::get_if<double>(&row.cells[column])) *real *= 100;
        if (auto* shared = std::get_if<Shared<MeanCell>>(&row.cells[column])) {
            MeanCell mean = **shared;
            for (double* number : {&mean.mean, &mean.low, &mean.high}) *number *= 100;
            *shared = std::move(mean);
        }
    }
}

/// Returns the number of samples of a row's cells, or "5–6" if the cells differ.
Cell samples_in_row(const Summary& summary, size_t block, size_t row) {
    std::set<int64_t> n;
    for (size_t column = 0; column < summary.columns.size(); ++column)
        if (const auto& estimate = summary.cell(block, row, column).estimate)
            n.insert(static_cast<int64_t>(estimate->n));
    if (n.empty()) return {};
    return n.size() == 1 ? Cell(*n.begin()) : Cell(fmt::format("{}–{}", *n.begin(), *n.rbegin()));
}

Column label_column_of(const Setting& setting) { return {setting.name, setting.title, setting.unit}; }

bool compares_policies(const Summary& summary) {
    return std::ranges::any_of(summary.row_settings, &Setting::of_policy);
}

/// Returns the name of the rows among which a row can be the best: those that differ only in policy, parameters and
/// budget. Rows of other lengths or tasks have other samples.
std::string rivals_of(const Summary& summary, size_t block, size_t row) {
    std::string name = summary.blocks[block].label;
    for (size_t i = 0; i < summary.row_settings.size(); ++i) {
        const Setting& setting = summary.row_settings[i];
        if (!setting.of_policy && !setting.full_has_all) name += "\n" + summary.rows[row][i].label;
    }
    return name;
}

/// Returns the labels of block and row.
std::vector<Cell> leading_labels(const Summary& summary, size_t block, size_t row) {
    std::vector<Cell> cells;
    if (summary.block_setting) cells.emplace_back(summary.blocks[block].label);
    for (const SettingValue& value : summary.rows[row]) cells.emplace_back(value.label);
    return cells;
}

/// Returns no text for an unknown value, as programs expect.
Cell known_label(const Cell& label) { return label == Cell(unknown_label) ? Cell() : label; }

/// Returns the known labels of block and row.
std::vector<Cell> leading_cells(const Summary& summary, size_t block, size_t row) {
    std::vector<Cell> cells = leading_labels(summary, block, row);
    std::ranges::transform(cells, cells.begin(), known_label);
    return cells;
}

std::vector<Column> leading_columns(const Summary& summary) {
    std::vector<Column> columns;
    if (summary.block_setting) columns.push_back(label_column_of(*summary.block_setting));
    for (const Setting& setting : summary.row_settings) columns.push_back(label_column_of(setting));
    return columns;
}

std::string comparison_text(const SummaryCell& cell) {
    if (!cell.comparison->is_distinguishable()) return "not distinguishable";
    return cell.comparison->paired.estimate.mean > 0 ? "higher" : "lower";
}

/// Returns difference, its interval, number of pairs, p, adjusted p, and the result.
std::vector<Cell> comparison_cells(const SummaryCell& cell) {
    if (!cell.comparison) return {{}, {}, {}, {}, {}, {}, cell.is_reference ? Cell("reference") : Cell()};
    const auto& [estimate, p] = cell.comparison->paired;
    return {estimate.mean,
            known_cell(estimate.interval.low),
            known_cell(estimate.interval.high),
            static_cast<int64_t>(estimate.n),
            p,
            cell.comparison->adjusted_p,
            comparison_text(cell)};
}

}  // namespace

MeanCell mean_cell(const SummaryCell& cell) {
    const bool is_alike = cell.comparison && !cell.comparison->is_distinguishable();
    return {cell.estimate->value, cell.estimate->interval.low, cell.estimate->interval.high, is_alike ? " ≈" : ""};
}

Table summary_table(const Summary& summary) {
    Table table{"results", fmt::format("{} over samples", summary.scalar->title), leading_columns(summary), {}};
    const Scalar& scalar = *summary.scalar;
    const auto add_column = [&](const std::string& name, const std::string& title) {
        Column column = real_column(scalar, name, title);
        if (compares_policies(summary)) column.best = scalar.best;
        column.second = true;
        table.columns.push_back(std::move(column));
    };
    for (const SettingValue& value : summary.columns)
        add_column(summary.column_setting ? fmt::format("{}_{}", summary.column_setting->name, value.label)
                                          : std::string(scalar.name),
                   summary.column_setting ? value.label : std::string(scalar.title));
    std::vector<std::string> extra = summary.extra_columns;
    if (summary.columns.size() < 2) std::erase(extra, mean_column);
    for (const std::string& name : extra) {
        if (name == mean_column) add_column("mean", scalar.is_cost() ? "Mean of medians" : "Mean");
        if (name == n_column) table.columns.push_back({"n", "n", "", ColumnType::integer});
    }
    for (size_t block = 0; block < summary.blocks.size(); ++block)
        for (size_t row = 0; row < summary.rows.size(); ++row) {
            Row line{leading_labels(summary, block, row), true, rivals_of(summary, block, row)};
            bool has_rows = false;
            for (size_t column = 0; column < summary.columns.size(); ++column) {
                const SummaryCell& cell = summary.cell(block, row, column);
                has_rows = has_rows || cell.has_rows;
                if (cell.has_rows && !cell.is_full) line.control = false;
                line.cells.push_back(cell.estimate ? Cell(mean_cell(cell)) : cell.n_failed ? Cell("failed") : Cell());
            }
            if (!has_rows) continue;
            for (const std::string& name : extra) {
                if (name == n_column) {
                    line.cells.push_back(samples_in_row(summary, block, row));
                } else {
                    const auto mean = summary.mean_of_columns(block, row);
                    line.cells.push_back(mean ? Cell(*mean) : Cell());
                }
            }
            table.rows.push_back(std::move(line));
        }
    for (size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].type != ColumnType::real) continue;
        if (summary.in_percent) convert_to_percent(table, i);
        if (summary.column_setting) table.columns[i].unit.clear();  // The heading is a setting's value.
    }
    table.note = fmt::format("{}. {}", titled(summary), summary.note());
    return table;
}

Table summary_numbers(const Summary& summary) {
    const Scalar& scalar = *summary.scalar;
    Table table{"results", fmt::format("{} over samples", scalar.title), {{"scalar", "Number", ""}}, {}};
    for (Column& column : leading_columns(summary)) table.columns.push_back(std::move(column));
    if (summary.column_setting) table.columns.push_back(label_column_of(*summary.column_setting));
    Column mean = real_column(scalar, "mean", "Mean");
    if (compares_policies(summary)) mean.best = scalar.best;
    const std::vector<Column> numbers = {{"n", "Samples", "", ColumnType::integer},
                                         {"contexts", "Contexts", "", ColumnType::integer},
                                         mean,
                                         real_column(scalar, "median", "Median"),
                                         real_column(scalar, "low", "95 % from"),
                                         real_column(scalar, "high", "to"),
                                         {"failed", "Failed", "", ColumnType::integer},
                                         real_column(scalar, "difference", "Difference"),
                                         real_column(scalar, "difference_low", "95 % from"),
                                         real_column(scalar, "difference_high", "to"),
                                         {"pairs", "Pairs", "", ColumnType::integer},
                                         {"p", "p", "", ColumnType::real, 4},
                                         {"adjusted_p", "Adjusted p", "", ColumnType::real, 4},
                                         {"comparison", "Comparison", ""},
                                         {"differs", "Differs", ""}};
    table.columns.insert(table.columns.end(), numbers.begin(), numbers.end());
    for (size_t block = 0; block < summary.blocks.size(); ++block)
        for (size_t row = 0; row < summary.rows.size(); ++row)
            for (size_t column = 0; column < summary.columns.size(); ++column) {
                const SummaryCell& cell = summary.cell(block, row, column);
                if (!cell.has_rows) continue;
                Row line{{std::string(scalar.name)},
                         cell.is_full,
                         fmt::format("{}\n{}", summary.blocks[block].label, summary.columns[column].label)};
                const auto add = [&](std::vector<Cell> cells) {
                    std::ranges::move(cells, std::back_inserter(line.cells));
                };
                add(leading_cells(summary, block, row));
                if (summary.column_setting) add({known_label(summary.columns[column].label)});
                const Estimate estimate = cell.estimate.value_or(Estimate());
                add({static_cast<int64_t>(estimate.n), static_cast<int64_t>(estimate.n_clusters)});
                if (cell.estimate)
                    add({estimate.mean, estimate.median, known_cell(estimate.interval.low),
                         known_cell(estimate.interval.high)});
                else
                    add({{}, {}, {}, {}});
                add({static_cast<int64_t>(cell.n_failed)});
                add(comparison_cells(cell));
                add({summary.mixed.empty() ? Cell() : Cell(fmt::format("{}", fmt::join(summary.mixed, "; ")))});
                table.rows.push_back(std::move(line));
            }
    table.note = summary.note();
    table.for_people = {summary_table(summary)};
    return table;
}

namespace {

/// Adds a column for each known scalar, grouped by the settings of the rows. @param begin_row returns the first cells
/// of a row
void add_overview(Table& table, std::span<const Result> results, std::span<const Scalar> scalars,
                  const std::vector<std::string>& settings, std::vector<Column> (*begin)(const Summary&),
                  std::vector<Cell> (*begin_row)(const Summary&, size_t row)) {
    for (const Scalar& scalar : scalars) {
        if (!is_known(scalar, results)) continue;
        const Summary summary = summarize(results, {.scalar = std::string(scalar.name),
                                                    .rows = settings,
                                                    .validity = scalar.is_score() ? validity_of_tasks(results) : ""});
        const bool is_first = table.columns.empty();
        if (is_first) {
            table.columns = begin(summary);
            table.columns.push_back({"n", "n", "", ColumnType::integer});
            table.note = summary.note();
        }
        table.columns.push_back(real_column(scalar, std::string(scalar.name), std::string(scalar.title)));
        for (size_t row = 0; row < summary.rows.size(); ++row) {
            const SummaryCell& cell = summary.cell(0, row, 0);
            if (is_first) {
                table.rows.push_back({begin_row(summary, row), cell.is_full});
                table.rows[row].cells.emplace_back(static_cast<int64_t>(cell.estimate ? cell.estimate->n : 0));
            }
            table.rows[row].cells.push_back(cell.estimate ? Cell(mean_cell(cell)) : Cell());
        }
    }
}

}  // namespace

Table overview_of_results(std::span<const Result> results) {
    std::vector<Scalar> scalars;
    for (const char* name : {"kl", "agreement", "coverage", "kept_share", "bytes_share", "score"})
        scalars.push_back(scalar_named(name));
    std::vector<std::string> settings = {"policy", "budget"};
    if (asks_in_both_ways(results)) settings.emplace_back("question");
    Table table{"results", "Means over samples", {}, {}};
    add_overview(
        table, results, scalars, settings,
        [](const Summary&) {
            return std::vector<Column>{{"run", "Run", ""}};
        },
        [](const Summary& summary, size_t row) { return std::vector<Cell>{summary.row_label(row)}; });
    const auto score = std::ranges::find(table.columns, "score", &Column::name);
    if (score == table.columns.end()) return table;
    Table for_people = table;
    convert_to_percent(for_people, static_cast<size_t>(score - table.columns.begin()));
    table.for_people = {std::move(for_people)};
    return table;
}

Table overview_of_costs(std::span<const Result> results) {
    Table table{"results", "Medians over samples", {}, {}};
    std::vector<std::string> settings{"length", "subset", "policy", "budget"};
    if (std::ranges::any_of(results, [](const Result& result) { return result.row.batch > 1; }))
        settings.insert(settings.begin() + 2, "batch");
    add_overview(table, results, cost_scalars(), settings, leading_columns,
                 [](const Summary& summary, size_t row) { return leading_cells(summary, 0, row); });
    return table;
}

}  // namespace kvscope::analysis
