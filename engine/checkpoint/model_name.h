#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// Returns the name of a GGUF file's model: `general.name` if all of its words occur in the file's name ("SmolLM2 135M
/// Instruct" for SmolLM2-135M-Instruct-Q8_0.gguf), else the file's name, unless that is generic (model.gguf).
std::string name_of_gguf(const std::filesystem::path& file, std::string_view metadata_name);

/// Returns the folder's name or, for a snapshot in the hub's cache, the repository's.
std::string name_of_directory(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
