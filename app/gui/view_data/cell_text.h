#pragma once

#include <optional>
#include <string>

#include "analysis/tables/table.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

[[nodiscard]] std::optional<double> number_in_cell(const analysis::Cell& cell);

/// Formats a cell with the digits and unit of its column: "1.5 MB", "< 0.001", "NaN". Returns "" for an empty cell.
[[nodiscard]] std::string cell_text(const analysis::Column& column, const analysis::Cell& cell);

/// Whether a difference rounds to zero with the digits of its column.
[[nodiscard]] bool rounds_to_zero(const analysis::Column& column, double difference);

/// Formats a difference with its sign and the digits of its column. Returns "" if the cell has no number.
[[nodiscard]] std::string cell_difference_text(const analysis::Column& column, const analysis::Cell& cell);

/// Returns the size of a run's cache as a share of the full cache; NaN until it is known.
[[nodiscard]] double share_of_full_bytes(Session& session, const RunKey& run);

}  // namespace kvscope::gui
