#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trace/records/records.h"

namespace kvscope::analysis {

/// Policy setting and budget of rows of results.
struct RowSettings {
    std::string setting;  ///< "snapkv:window=8", or "snapkv (kvpress)" for a row of another program
    /// "128"; "12.5 %" for a share of each sample's prompt; "bytes of 128" for a policy that keeps all tokens in the
    /// bytes of 128 entries; "all" for `full`.
    std::string budget;
    bool of_bytes = false;              ///< The budget is a number of bytes.
    std::optional<bool> question_seen;  ///< set only if policies see the question in some rows of the table, not in all
    std::string model;                  ///< empty if all rows of the table have one model
};

/// The samples of a table, and the groups of rows that have equal settings.
struct SettingsOfRows {
    struct Place {
        std::size_t sample = 0;  ///< number of the sample in the table
        std::size_t group = 0;   ///< index in `groups`
    };
    std::vector<Place> rows;
    std::vector<RowSettings> groups;  ///< in the order of their first rows

    [[nodiscard]] const RowSettings& of(std::size_t row) const { return groups[rows[row].group]; }
};

/// Returns the settings of the rows of a table. The rows of a sample begin with the full run's row and its repetitions,
/// because names of samples may repeat.
[[nodiscard]] SettingsOfRows settings_of_rows(std::span<const trace::ResultRow> rows);

/// Returns the sort key of RowSettings::budget: entries, then bytes, then shares, each in ascending order.
[[nodiscard]] std::pair<int, double> budget_place(const std::string& budget);

}  // namespace kvscope::analysis
