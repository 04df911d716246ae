#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/program/engine/run_job.h"

namespace kvscope::program {

struct PromptsFound {
    std::vector<PromptText> prompts;
    std::vector<std::string> problems;  ///< why files or lines are left out, one reason each
};

/// Reads the prompts of a text file, of a file of JSON records (.jsonl or .ndjson), or of all files in a folder in the
/// order of their names. "-" is standard input. Hidden files and subfolders are not read.
/// A record is one prompt: {"context": "…", "question": "…", "answers": ["…"]}, of which only the context is required.
/// @param questions asked about each prompt that has no question of its own
/// @throws std::runtime_error if `path` is unreadable or an empty folder
[[nodiscard]] PromptsFound find_prompts(const std::filesystem::path& path, const std::vector<std::string>& questions);

/// Appends a number to the names of prompts from different files or lines that have the same name: "report",
/// "report-2".
void make_names_unique(std::vector<PromptText>& prompts);

}  // namespace kvscope::program
