#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/shared.h"
#include "common/shared_text.h"

namespace kvscope::analysis {

enum class ColumnType { text, integer, real };
enum class Best { none, lowest, highest };

struct Column {
    std::string name;   ///< for programs: CSV header, JSON key ("kl_mean")
    std::string title;  ///< for people: Markdown, LaTeX, terminal; empty if it equals the name
    std::string unit;   ///< empty if there is none
    ColumnType type = ColumnType::text;
    int decimals = 3;  ///< decimals of real numbers in Markdown, LaTeX and text; CSV and JSON keep all digits
    Best best = Best::none;
    bool is_json = false;  ///< The text is JSON: JSON formats insert it as an object.
    bool second = false;   ///< Markdown and LaTeX underline the second-best number.
    /// Name of another column. Tables for people omit this column if it has the same cells as the other.
    std::string repeats = {};
};

/// A mean with its interval, "0.50 [0.30, 0.70]". CSV and JSON contain only the mean.
struct MeanCell {
    double mean = 0;
    double low = NAN, high = NAN;  ///< NaN: no interval is shown
    std::string mark = {};         ///< text after the interval

    [[nodiscard]] bool operator==(const MeanCell&) const = default;
};

/// A cell without a value (unknown or not applicable) is std::monostate. Real numbers may be NaN or infinite. It takes
/// 16 bytes: a table of samples has millions of cells.
using Cell = std::variant<std::monostate, SharedText, int64_t, double, Shared<MeanCell>>;
static_assert(sizeof(Cell) == 16);

[[nodiscard]] inline Cell known_cell(double value) { return std::isnan(value) ? Cell() : Cell(value); }

struct Row {
    std::vector<Cell> cells;  ///< one per column
    bool control = false;     ///< never marked as best: the full run, or a run that takes more bytes than the full run
    /// Name of the group (one prompt and budget) in which the best number is determined.
    std::string group = {};
};

/// The numbers of a figure, or the output of a command.
struct Table {
    std::string name;
    std::string title;
    std::vector<Column> columns;
    std::vector<Row> rows;
    std::string note = {};  ///< shown with the table in text, Markdown and LaTeX
    /// The same numbers, arranged for people: text, Markdown and LaTeX show these tables instead. Empty: this table.
    std::vector<Table> for_people = {};
};

}  // namespace kvscope::analysis
