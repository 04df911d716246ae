// The tables /results/<task>. Functions throw DamagedTrace or h5::Failure.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/hdf5/hdf5.h"
#include "trace/records/records.h"

namespace kvscope::trace {

struct RowRange {
    std::size_t first = 0, count = 0;
};
/// Reads a table, or the rows of a range. Members of missing columns keep their defaults. `where` names the file and
/// table in messages.
[[nodiscard]] std::vector<ResultRow> load_results(hid_t table, const std::string& where,
                                                  const std::optional<RowRange>& range = {});
/// Reads the rows of a range into `out`, whose rows have default values.
void load_results_into(ResultRow* out, hid_t table, const std::string& where, const RowRange& range);
/// Throws DamagedTrace as load_results().
[[nodiscard]] std::size_t n_rows_of_table(hid_t table, const std::string& where);
/// Returns the columns of result_columns.h that a table has. Tables of earlier versions and other programs lack some.
[[nodiscard]] std::set<std::string_view> columns_of_table(hid_t table);
void store_results(hid_t file, const std::string& path, const std::vector<ResultRow>& rows);

/// Creates a table, whose rows store_rows() then writes.
[[nodiscard]] h5::Handle create_results(hid_t file, const std::string& path, std::size_t n_rows);
void store_rows(hid_t table, std::size_t first, const std::vector<ResultRow>& rows, const std::string& action);

/// Computes `data_hash`: the SHA-256 of the sorted lines `sample_hash`, one per sample.
class DataHash {
 public:
    /// Adds rows of the table. The rows of a sample must be consecutive and begin with the full run.
    void add(std::span<const ResultRow> rows);
    /// Returns the hash, or "" if a sample's hash is unknown.
    [[nodiscard]] std::string text();

 private:
    std::vector<std::string> samples_;
    std::string sample_id_;
};
/// Sets `data_hash` of the rows of a whole table.
void set_data_hash(std::vector<ResultRow>& rows);

}  // namespace kvscope::trace
