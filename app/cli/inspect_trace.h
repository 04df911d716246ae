#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "app/cli/output_option.h"
#include "trace/reader.h"

namespace kvscope::cli {

/// Settings for the memory columns in the tables of runs.
struct MemoryAsked {
    std::int64_t n_tokens = 0;  ///< length of the assumed text; 0 omits the columns
    std::string model;          ///< one of analysis::known_cache_shapes(); empty for the trace's model
    bool budgets_grow = false;  ///< whether budgets in entries grow with the text
};

/// Checks a trace and prints its contents. As text: model, prompts, runs, answers, scores and problems. As JSON: the
/// tree, the runs with parameters and answers, the problems. Else: the runs or, if there are none, the scores.
/// Unreadable parts are listed as problems.
/// @returns 0, or 1 where the trace breaks the format
/// @throws what trace::Reader throws for a file that is no trace
int inspect_trace(const std::filesystem::path& path, const OutputFormat& format, bool whole_text,
                  const MemoryAsked& memory = {});

/// Returns what the policies observed for a task: "policies saw the question; windows: 32 of h2o, snapkv". Omits the
/// first part if the recipe does not store it. @param rows results of the trace's task
std::string what_policies_saw(const trace::Reader& reader, std::span<const trace::ResultRow> rows);

/// Returns the summary at the end of a command that writes a trace: for each of the first eight prompts the question,
/// the table of runs and the answers. Names unreadable parts at the end.
std::string results_text(const trace::Reader& reader);

}  // namespace kvscope::cli
