#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// The traces with some of their runs called otherwise (trace::Reader::with_labels), in all prompts.
/// @param renames "LABEL=NEW LABEL" each, where LABEL is a run's recorded label, or that without its budget, of all
/// budgets ("k-vec=K-VEC": "K-VEC @ 64" and "K-VEC @ 256"), and may hold '=' itself
/// @throws FigureError where no trace has such a run, with the labels there are, where there is no new label, or where
/// two runs of a prompt would be called alike
std::vector<trace::Reader> renamed(const std::vector<trace::Reader>& readers, const std::vector<std::string>& renames);

/// The settings of the tasks' results that are called otherwise, with their new labels: of renames that name all
/// budgets of a policy or setting. @throws as renamed()
std::map<std::string, std::string> renamed_settings(const std::vector<trace::Reader>& readers,
                                                    const std::vector<std::string>& renames);

}  // namespace kvscope::analysis
