// A quick look into any data set of a trace, known to the schema or not: for the viewer's list of a
// file's contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

namespace kvscope::trace {

/// Integers that a double does not hold are text, exact; enumerations give their names ("?" without one); nothing where
/// the type is neither number nor text (references, lists, nested tables …).
using PeekValue = std::variant<std::monostate, double, std::string>;

/// A window of a data set. The last dimension runs along the columns and the one before along the rows,
/// further ones stay at one index; a data set of one dimension is a column. A table's columns are a
/// dimension after its own.
struct Peek {
    std::string type;                       ///< as in TreeNode
    std::vector<std::size_t> shape;         ///< the data set's; empty if it is a single value
    std::vector<std::string> names;         ///< of a table's columns in the window; otherwise empty
    std::vector<std::string> column_types;  ///< of the same
    std::size_t first_row = 0, n_rows = 0;  ///< n_rows, n_columns: what there was, at most what was asked for
    std::size_t first_column = 0, n_columns = 0;
    std::vector<PeekValue> values;  ///< (n_rows, n_columns), row-major

    [[nodiscard]] const PeekValue& at(std::size_t row, std::size_t column) const {
        return values[row * n_columns + column];
    }
};

/// Reads the part that is shown, however large the data set. `first` has the window's first index in each
/// dimension, a table's columns included; what is left out is 0. In a `.part` folder a path means what it
/// will mean in the finished trace (a task's results are one table, whatever batches they are in).
/// Throws as Reader does; std::invalid_argument if there is no data set of that name,
/// std::out_of_range if `first` lies outside.
Peek peek(const std::filesystem::path& path, const std::string& data_set, const std::vector<std::size_t>& first,
          std::size_t max_rows, std::size_t max_columns);

}  // namespace kvscope::trace
