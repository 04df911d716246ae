#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::results {

/// A table of texts.
struct CsvTable {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;  ///< as long as `columns`

    /// Returns the index of a column.
    [[nodiscard]] std::optional<size_t> column(std::string_view name) const;
};

/// Reads CSV as pandas writes it (RFC 4180). A line feed ends a row, and a carriage return before it only if the first
/// row ends so. @throws UnusableFile if a row has another length than the first, or a quotation mark is missing
/// @param file name for messages
[[nodiscard]] CsvTable read_csv(std::string_view text, const std::string& file);

/// Returns the text of a table, which read_csv() reads.
[[nodiscard]] std::string csv_text(const CsvTable& table);

}  // namespace kvscope::results
