#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "app/cli/output_option.h"
#include "trace/reader.h"

namespace kvscope::cli {

/// The text and the model for which the tables of runs say what each cache would take of memory.
struct MemoryAsked {
    std::int64_t n_tokens = 0;  ///< 0: nobody asked
    std::string model;          ///< one of analysis::known_cache_shapes(); empty: the trace's own
    bool budgets_grow = false;  ///< a budget of entries grows with the text
};

/// Checks a trace and prints what is in it. As text: model, prompts, tables of runs, answers, scores and every problem;
/// as JSON: the tree, the runs with parameters and answers, and the problems; else the runs, or the scores where there
/// are none. What cannot be read becomes a problem, too, and the rest is shown.
/// @returns 0, or 1 where the trace breaks the format
/// @throws what trace::Reader throws for a file that is no trace
int inspect_trace(const std::filesystem::path& path, const OutputFormat& format, bool whole_text,
                  const MemoryAsked& memory = {});

/// What decides whether policies could keep what answers a task's questions: "policies saw the question; windows: 32 of
/// h2o, snapkv". Of the first in a recipe that does not say it, nothing. @param rows of the trace's task
std::string what_policies_saw(const trace::Reader& reader, std::span<const trace::ResultRow> rows);

/// What a command ends with that made a trace: by prompt (the first eight) the question, the table of runs and their
/// answers, as `inspect_trace` shows them. What cannot be read is named behind them.
std::string results_text(const trace::Reader& reader);

}  // namespace kvscope::cli
