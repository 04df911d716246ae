#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// Returns the file's name, or `general.name` if the file's name is generic or contains all words of `general.name`.
[[nodiscard]] std::string name_of_gguf(const std::filesystem::path& file, std::string_view metadata_name);

/// Returns the folder's name or, in the hub's cache, the repository's name.
[[nodiscard]] std::string name_of_directory(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
