#pragma once

#include <optional>
#include <string>

#include "analysis/tables/table.h"

namespace kvscope::gui {

/// nullopt for texts, empty cells and NaN.
std::optional<double> number_in(const analysis::Cell& cell);

/// In the digits and units of its column: "1.5 MB", "< 0.001", "NaN"; empty for an empty cell.
std::string text_of(const analysis::Column& column, const analysis::Cell& cell);

/// Whether nothing of a difference is seen in the digits of its column.
bool is_unseen(const analysis::Column& column, double difference);

/// A difference in the digits of its column with its sign, which zero has not; empty for what is no number.
std::string difference_text(const analysis::Column& column, const analysis::Cell& cell);

}  // namespace kvscope::gui
