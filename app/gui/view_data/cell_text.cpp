#include "app/gui/view_data/cell_text.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "analysis/measures/result_row.h"
#include "analysis/tables/table_format.h"

namespace kvscope::gui {

using analysis::Cell;
using analysis::Column;
using analysis::ColumnType;

std::optional<double> number_in_cell(const Cell& cell) {
    if (const auto* real = std::get_if<double>(&cell); real && !std::isnan(*real)) return *real;
    if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
    return std::nullopt;
}

std::string cell_text(const Column& column, const Cell& cell) {
    if (const auto* word = std::get_if<SharedText>(&cell)) return word->string();
    const auto value = number_in_cell(cell);
    if (!value) return std::holds_alternative<std::monostate>(cell) ? "" : "NaN";
    if (column.unit == "B") return analysis::format_bytes(*value);
    if (const auto* whole = std::get_if<int64_t>(&cell)) return analysis::format_count(*whole);
    const double step = std::pow(10.0, -column.decimals);
    const bool is_short_time = column.unit == "s" && *value > 0 && *value < step / 2;
    return is_short_time ? fmt::format("< {:.{}f}", step, column.decimals)
                         : analysis::format_real(*value, column.decimals);
}

bool rounds_to_zero(const Column& column, double difference) {
    const double step = column.type == ColumnType::integer ? 1 : std::pow(10.0, -column.decimals);
    return std::abs(difference) < step / 2;
}

std::string cell_difference_text(const Column& column, const Cell& cell) {
    const auto value = number_in_cell(cell);
    if (!value) return "";
    const double size = rounds_to_zero(column, *value) ? 0 : std::abs(*value);
    const std::string text = column.unit == "B"                   ? analysis::format_bytes(size)
                             : column.type == ColumnType::integer ? analysis::format_count(std::llround(size))
                                                                  : fmt::format("{:.{}f}", size, column.decimals);
    return size == 0 ? text : (*value > 0 ? "+" : "−") + text;
}

double share_of_full_bytes(Session& session, const RunKey& run) {
    static const TaskSlot<std::vector<trace::ResultRow>> slot;
    const RunAt at = session.at(run);
    const auto rows = session.tasks.ask(
        slot, fmt::format("{} {}", run.document, run.prompt), session.document(run.document)->runs_stamp(run.prompt),
        [reader = at.reader, prompt = at.prompt](const std::stop_token& stop) {
            return analysis::result_rows_of_prompt(reader->with_stop(stop), prompt, analysis::ignore_damage);
        });
    if (!rows.value || static_cast<size_t>(at.run) >= rows.value->size())
        return std::numeric_limits<double>::quiet_NaN();
    return analysis::share_of_full_bytes(*rows.value, (*rows.value)[static_cast<size_t>(at.run)]);
}

}  // namespace kvscope::gui
