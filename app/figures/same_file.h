#pragma once

#include <filesystem>

namespace kvscope::figures {

/// Whether what is written to one is written to the other: the same file through any links, also where it is not there
/// yet. Throws nothing.
bool are_same_file(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace kvscope::figures
