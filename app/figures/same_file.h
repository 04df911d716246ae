#pragma once

#include <filesystem>

namespace kvscope::figures {

/// Whether both paths lead to the same file once links are followed. The file need not exist yet. Does not throw.
[[nodiscard]] bool are_same_file(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace kvscope::figures
