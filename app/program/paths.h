#pragma once

#include <filesystem>
#include <string>

namespace kvscope::program {

/// Returns the model in KVSCOPE_DEFAULT_MODEL, else the one installed with kvscope, else the one that the build
/// fetched.
/// @throws std::runtime_error if none exists
std::filesystem::path default_model();

/// Returns the path of a file from assets/: of the installed program, else in the source tree.
/// @throws std::runtime_error if the file is missing
std::filesystem::path asset(const std::string& name);

/// Reads a whole text file; "-" is standard input. A pipe is read until its writers close it.
/// @throws std::runtime_error if the file cannot be read, is a pipe without a writer, or is larger than 256 MB
std::string read_text(const std::filesystem::path& path);

/// Reads a file that contains one prompt.
/// @throws std::runtime_error as read_text, and for a .jsonl or .ndjson file with one JSON record per line
std::string read_prompt(const std::filesystem::path& path);

/// Returns the name of a text in messages: its path, or "standard input".
std::string name_of_text(const std::filesystem::path& path);

}  // namespace kvscope::program
