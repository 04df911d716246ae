// Reads blocks of any data set in a trace for the app, including data sets that schema.h does not declare.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

namespace kvscope::trace {

/// A number, a text, or monostate for a value of another type. Enumerations and large integers are given as texts.
using DataSetValue = std::variant<std::monostate, double, std::string>;

/// A two-dimensional block of a data set. Its columns are a table's columns or the last dimension, and its rows are the
/// dimension before. Other dimensions have a fixed index. A one-dimensional data set is one column.
struct DataSetBlock {
    std::string type;                       ///< type name, as in TreeNode
    std::vector<std::size_t> shape;         ///< shape of the whole data set; empty for a single value
    std::vector<std::string> names;         ///< names of the table columns in the block; empty if not a table
    std::vector<std::string> column_types;  ///< types of the table columns in the block
    std::size_t first_row = 0, n_rows = 0;  ///< first row, and number of rows: at most the requested number
    std::size_t first_column = 0, n_columns = 0;
    std::vector<DataSetValue> values;  ///< (n_rows, n_columns), row-major

    [[nodiscard]] const DataSetValue& at(std::size_t row, std::size_t column) const {
        return values[row * n_columns + column];
    }
};

/// Reads only the requested block, which starts at `first` (omitted indices are 0). In a `.part` folder, all batches of
/// a task's results form one table. Throws the exceptions of Reader, std::invalid_argument if the data set does not
/// exist, and std::out_of_range if `first` lies outside.
[[nodiscard]] DataSetBlock read_data_set_block(const std::filesystem::path& path, const std::string& data_set,
                                               const std::vector<std::size_t>& first, std::size_t max_rows,
                                               std::size_t max_columns);

}  // namespace kvscope::trace
