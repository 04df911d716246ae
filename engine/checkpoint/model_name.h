#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// Returns `general.name` if the file's name contains all its words or is generic (model.gguf), else the file's name.
std::string name_of_gguf(const std::filesystem::path& file, std::string_view metadata_name);

/// Returns the folder's name or, in the hub's cache, the repository's name.
std::string name_of_directory(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
