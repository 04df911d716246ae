// Reads HDF5 groups into records. `where` names the file and group in messages. All functions throw DamagedTrace.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>

#include "trace/records/records.h"
#include "trace/store_records.h"

namespace kvscope::trace {

[[nodiscard]] ModelAttributes load_model(hid_t group, const std::string& where);
[[nodiscard]] PromptAttributes load_prompt(hid_t group, const std::string& where);
RunAttributes load_run(hid_t group, const std::string& where);
/// Returns the run whose scores this part of an unfinished trace shares, or nullopt if the part shares no scores.
[[nodiscard]] std::optional<int> load_score_source_run_number(hid_t run_group, const std::string& where);

}  // namespace kvscope::trace
