#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::checkpoint {

/// Returns the SHA-256 of the files' sizes, the XXH3-128 hashes of their 4 MiB blocks, and `configuration`. File names
/// do not matter. The hashes are cached in kvscope/fingerprints until a file's path, size, inode or times change.
/// @throws CheckpointError if a file cannot be read
[[nodiscard]] std::string fingerprint_files(const std::vector<std::filesystem::path>& files,
                                            std::string_view configuration);

}  // namespace kvscope::checkpoint
