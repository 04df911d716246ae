#pragma once

#include <filesystem>
#include <vector>

#include "analysis/drawing/figure_definition.h"
#include "trace/reader.h"

namespace kvscope::cli {

/// The traces of an export: readers, paths, and the number of the chosen prompt in each, one per trace.
struct ExportedTraces {
    const std::vector<trace::Reader>& readers;
    const std::vector<std::filesystem::path>& paths;
    const std::vector<int>& prompts;
};

/// Returns the traces as parts of one figure. Several have names, and different styles for different runs.
[[nodiscard]] std::vector<analysis::TracePart> parts_of_traces(const ExportedTraces& traces,
                                                               const analysis::FigureOptions& options);

/// Returns A and B: two traces, or two runs of one trace. @throws FigureError for another number of traces or runs
[[nodiscard]] std::vector<analysis::TracePart> parts_of_difference(const ExportedTraces& traces,
                                                                   const analysis::FigureOptions& chosen);

}  // namespace kvscope::cli
