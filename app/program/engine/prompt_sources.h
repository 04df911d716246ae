#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "app/program/engine/run_job.h"

namespace kvscope::program {

struct PromptsFound {
    std::vector<PromptText> prompts;
    std::vector<std::string> problems;  ///< why files or lines are left out, one reason each
};

/// Returns a text, unless its context is empty, and then the prompts of sources. A source is a text file, a file of
/// JSON records (.jsonl or .ndjson), or a folder, whose files are read in the order of their names. "-" is
/// standard input. Hidden files and subfolders are not read. A record is one prompt: {"context": "…", "question": "…",
/// "answers": ["…"]}. Only the context is required. The questions of the text are also asked about each prompt
/// that has no question of its own. Prompts with the same name get numbers: "report", "report-2".
/// @throws std::runtime_error if a source is unreadable or an empty folder
[[nodiscard]] PromptsFound find_prompts(PromptText text, std::span<const std::filesystem::path> sources);

}  // namespace kvscope::program
