#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace kvscope::analysis {

enum class ColumnType { text, integer, real };
enum class Best { none, lowest, highest };

struct Column {
    std::string name;   ///< for programs: CSV header, JSON key ("kl_mean")
    std::string title;  ///< for people: Markdown, LaTeX, terminal; empty: the name
    std::string unit;   ///< empty: none
    ColumnType type = ColumnType::text;
    int decimals = 3;  ///< of reals in the forms for people; CSV and JSON keep every digit
    Best best = Best::none;
    bool is_json = false;  ///< of text: JSON, which stays an object in forms that are JSON
};

/// Empty: unknown or not applicable. Reals may be NaN or infinite.
using Cell = std::variant<std::monostate, std::string, int64_t, double>;

/// NaN, a number that is not known, is an empty cell.
inline Cell known_cell(double value) { return std::isnan(value) ? Cell() : Cell(value); }

struct Row {
    std::vector<Cell> cells;  ///< one for each column
    bool control = false;     ///< the full cache, or what takes more bytes than it: shown, never counted as best
    /// Best among the rows of one group alone: those of one prompt with one budget.
    std::string group = {};
};

/// The numbers behind a figure, or a command's answer.
struct Table {
    std::string name;
    std::string title;
    std::vector<Column> columns;
    std::vector<Row> rows;
};

}  // namespace kvscope::analysis
