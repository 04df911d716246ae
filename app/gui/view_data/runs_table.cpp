#include "app/gui/view_data/runs_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "analysis/runs/cost_difference.h"
#include "app/gui/view_data/cell_text.h"

namespace kvscope::gui {
namespace {

using analysis::Best;
using analysis::Cell;

constexpr std::array<const char*, 9> hidden_at_first = {
    "run",    "policy", "budget", "removed_share", "kl_stderr_over_steps", "kl_steps", "cache_bytes_predicted",
    "status", "message"};

int order_of(const Cell& a, const Cell& b, bool descending) {
    const auto* word_a = std::get_if<SharedText>(&a);
    const auto* word_b = std::get_if<SharedText>(&b);
    if (word_a && word_b) return descending ? word_b->string().compare(*word_a) : word_a->string().compare(*word_b);
    const auto x = number_in_cell(a);
    const auto y = number_in_cell(b);
    if (!x || !y) return x ? -1 : y ? 1 : 0;
    if (*x == *y) return 0;
    return (*x < *y) != descending ? -1 : 1;
}

}  // namespace

RunsTable::RunsTable(const std::vector<analysis::Column>& all, std::vector<Row> runs, const Compared& compared)
    : rows(std::move(runs)) {
    add_columns(all, compared.kind == Comparison::Kind::traces && !compared.pairs.empty());
    fill_cells(compared);
    if (compared.kind == Comparison::Kind::runs) pin(compared.pairs.front());
}

void RunsTable::add_columns(const std::vector<analysis::Column>& all, bool with_differences) {
    for (size_t i = 0; i < all.size(); ++i) {
        const bool is_hidden =
            std::ranges::any_of(hidden_at_first, [&](const char* name) { return all[i].name == name; });
        columns.push_back({all[i], i, false, is_hidden});
        if (!with_differences || !analysis::has_meaningful_difference(all[i])) continue;
        columns.push_back({analysis::difference_column(all[i]), i, true, is_hidden});
        columns.back().column.best = all[i].best;
    }
}

const RunsTable::Row* RunsTable::find(const RunKey& run) const {
    const auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.run == run; });
    return found == rows.end() ? nullptr : &*found;
}

void RunsTable::fill_cells(const Compared& compared) {
    for (Row& row : rows) {
        const ComparedRuns* pair = compared.of(row.run);
        const Row* less = pair ? find(pair->b) : nullptr;
        for (const Column& column : columns) {
            const Cell& own = row.row->cells[column.of];
            if (!column.is_difference)
                row.cells.push_back(own);
            else
                row.cells.push_back(less ? analysis::difference_of_cells(own, less->row->cells[column.of]) : Cell());
        }
    }
}

void RunsTable::pin(const ComparedRuns& pair) {
    const Row* const found_a = find(pair.a);
    const Row* const found_b = find(pair.b);
    if (!found_a || !found_b) return;
    Row a = *found_a;
    Row b = *found_b;
    Row difference;
    difference.pinned = "A − B";
    for (size_t i = 0; i < columns.size(); ++i) {
        difference.cells.push_back(analysis::has_meaningful_difference(columns[i].column)
                                       ? analysis::difference_of_cells(a.cells[i], b.cells[i])
                                       : Cell());
    }
    a.pinned = "A";
    b.pinned = "B";
    std::erase_if(rows, [&](const Row& row) { return row.run == pair.a || row.run == pair.b; });
    rows.insert(rows.begin(), {std::move(a), std::move(b), std::move(difference)});
}

size_t RunsTable::n_pinned() const {
    return static_cast<size_t>(std::ranges::count_if(rows, [](const Row& row) { return !row.pinned.empty(); }));
}

bool RunsTable::is_empty(size_t column) const {
    return std::ranges::all_of(
        rows, [&](const Row& row) { return std::holds_alternative<std::monostate>(row.cells[column]); });
}

void RunsTable::sort(size_t column, bool descending) {
    std::stable_sort(
        rows.begin() + static_cast<std::ptrdiff_t>(n_pinned()), rows.end(),
        [&](const Row& a, const Row& b) { return order_of(a.cells[column], b.cells[column], descending) < 0; });
}

double RunsTable::largest(size_t column) const {
    double largest = 0;
    for (const Row& row : rows) {
        const auto value = number_in_cell(row.cells[column]);
        if (row.run.valid() && value && std::isfinite(*value)) largest = std::max(largest, *value);
    }
    return largest;
}

std::map<std::string, double> RunsTable::best(size_t index, const Session& session) const {
    const analysis::Column& column = columns[index].column;
    std::map<std::string, double> best;
    if (column.best == Best::none || columns[index].is_difference) return best;
    std::map<std::string, std::set<std::string>> texts;
    for (const Row& row : rows) {
        if (!row.run.valid() || row.row->control || !session.is_visible(row.run)) continue;
        const auto value = number_in_cell(row.cells[index]);
        if (!value) continue;
        const std::string group = group_of(row);
        const auto [found, is_first] = best.try_emplace(group, *value);
        if (column.best == Best::highest ? *value > found->second : *value < found->second) found->second = *value;
        texts[group].insert(cell_text(column, row.cells[index]));
    }
    std::erase_if(best, [&](const auto& each) { return texts[each.first].size() < 2; });
    return best;
}

std::string RunsTable::group_of(const Row& row) {
    return fmt::format("{} {}: {}", row.run.document, row.run.prompt, row.row->group);
}

}  // namespace kvscope::gui
