#include "analysis/runs/cost_difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace kvscope::analysis {
namespace {

constexpr std::array<std::string_view, 4> columns_without_difference = {"run", "budget", "kl_stderr_over_steps",
                                                                        "kl_steps"};

bool is_number(const Cell& cell) {
    if (const auto* real = std::get_if<double>(&cell)) return std::isfinite(*real);
    return std::holds_alternative<int64_t>(cell);
}

double real(const Cell& cell) {
    if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
    return std::get<double>(cell);
}

}  // namespace

bool has_meaningful_difference(const Column& column) {
    return column.type != ColumnType::text &&
           std::find(columns_without_difference.begin(), columns_without_difference.end(), column.name) ==
               columns_without_difference.end();
}

Column difference_column(const Column& column) {
    Column difference = column;
    difference.name += "_difference";
    difference.title = "Δ " + (column.title.empty() ? column.name : column.title);
    difference.best = Best::none;
    return difference;
}

Cell difference_of_cells(const Cell& a, const Cell& b) {
    if (!is_number(a) || !is_number(b)) return {};
    const auto* whole_a = std::get_if<int64_t>(&a);
    const auto* whole_b = std::get_if<int64_t>(&b);
    if (whole_a && whole_b) return *whole_a - *whole_b;
    return real(a) - real(b);
}

Change judge_as_better_or_worse(const Column& column, const Cell& difference) {
    if (column.best == Best::none || !is_number(difference) || real(difference) == 0) return Change::none;
    return (real(difference) > 0) == (column.best == Best::highest) ? Change::better : Change::worse;
}

}  // namespace kvscope::analysis
