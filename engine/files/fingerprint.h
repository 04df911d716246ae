#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::checkpoint {

/// Returns the SHA-256 over the sizes and the XXH3-128 hashes of all 4 MiB blocks of the files, in the given order, and
/// over `configuration`. File names do not matter, so a copied model has the same fingerprint. Hashes are cached in
/// $XDG_CACHE_HOME/kvscope/fingerprints (else ~/.cache/…) until a file's path, size, inode or times of change differ.
/// @throws CheckpointError if a file cannot be read
std::string fingerprint_files(const std::vector<std::filesystem::path>& files, std::string_view configuration);

}  // namespace kvscope::checkpoint
