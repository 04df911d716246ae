// The tables /results/<task>. Functions throw DamagedTrace or h5::Failure.
#pragma once

#include <hdf5.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trace/records/records.h"

namespace kvscope::trace {

/// Reads a table. Members of missing columns keep their defaults. `where` names the file and table in messages.
[[nodiscard]] std::vector<ResultRow> load_results(hid_t table, const std::string& where);
/// Returns the columns of result_columns.h that a table has. Tables of earlier versions and other programs lack some.
[[nodiscard]] std::set<std::string_view> columns_of_table(hid_t table);
void store_results(hid_t file, const std::string& path, const std::vector<ResultRow>& rows);

/// Sets `data_hash` of the rows of a whole table: the SHA-256 of the sorted lines `sample_hash`, one per sample. The
/// hash is empty if a sample's hash is unknown.
void set_data_hash(std::vector<ResultRow>& rows);

}  // namespace kvscope::trace
