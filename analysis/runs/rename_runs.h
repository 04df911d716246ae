#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Returns the traces with new labels for some runs (trace::Reader::with_labels), in all prompts.
/// @param renames texts "LABEL=NEW LABEL", where LABEL is a recorded label and may contain '='. A LABEL without a
/// budget renames the runs of all budgets: "k-vec=K-VEC" gives "K-VEC @ 64" and "K-VEC @ 256".
/// @throws FigureError if no run has the label, the new label is empty, or two runs of a prompt would get equal labels
[[nodiscard]] std::vector<trace::Reader> rename_runs(const std::vector<trace::Reader>& readers,
                                                     const std::vector<std::string>& renames);

/// Returns new labels of the settings of task results, from renames that apply to all budgets. @throws as rename_runs()
[[nodiscard]] std::map<std::string, std::string> new_labels_of_settings(const std::vector<trace::Reader>& readers,
                                                                        const std::vector<std::string>& renames);

}  // namespace kvscope::analysis
