#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "app/cli/table_format_option.h"
#include "trace/reader.h"

namespace kvscope::cli {

struct MemoryColumns {
    std::int64_t n_tokens = 0;  ///< tokens of the assumed text; 0 omits the columns of bytes
    std::string model;          ///< one of analysis::known_cache_shapes(); empty for the trace's model
    bool budgets_grow = false;  ///< whether budgets in entries grow with the text
};

/// Checks a trace and prints its contents. Text contains everything, JSON the tree, runs and problems. Other formats
/// contain a table of runs or scores. @returns 0, or 1 if the trace violates the format @throws as trace::Reader
[[nodiscard]] int inspect_trace(const std::filesystem::path& path, const OutputFormat& format, bool whole_text,
                                const MemoryColumns& memory = {});

/// Returns "scores of niah in %, with 95 % intervals; one column per budget", for task_scores_by_budget().
[[nodiscard]] std::string caption_of_scores(std::string_view task);

/// Returns a line about the policies of a task: "question seen; window of 32 queries: h2o, snapkv".
[[nodiscard]] std::string describe_what_policies_saw(std::span<const trace::ResultRow> rows);

/// Returns the means over all prompts, and the question, table of runs and answers of each prompt if there are few.
[[nodiscard]] std::string tables_of_runs_and_answers(const trace::Reader& reader);

}  // namespace kvscope::cli
