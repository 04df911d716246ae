#pragma once

#include <filesystem>
#include <string>

namespace kvscope::program {

/// The model to start with: the environment's KVSCOPE_DEFAULT_MODEL, one installed beside the program, or the one that
/// the build fetched.
/// @throws std::runtime_error where there is none.
std::filesystem::path default_model();

/// A file that comes with the program (assets/): beside an installed program, else in the sources.
/// @throws std::runtime_error where it is missing.
std::filesystem::path asset(const std::string& name);

/// The whole of a text file; "-" is standard input. A pipe is read to its end, if somebody writes into it.
/// @throws std::runtime_error where it cannot be read, or is larger than any text for a model (256 MB), as a device
/// without an end is.
std::string read_text(const std::filesystem::path& path);

/// The same for a file with one prompt: not for records in JSON, a line each (.jsonl, .ndjson).
/// @throws std::runtime_error as read_text, and for such records
std::string read_prompt(const std::filesystem::path& path);

/// What such a text is called in messages: the path, or "standard input".
std::string name_of_text(const std::filesystem::path& path);

}  // namespace kvscope::program
