#pragma once

#include <filesystem>
#include <string>

namespace kvscope {

/// Returns the contents of a file. Does not wait for the writer of a pipe. @throws std::system_error
[[nodiscard]] std::string file_text(const std::filesystem::path& path);

}  // namespace kvscope
