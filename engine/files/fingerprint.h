#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::checkpoint {

/// SHA-256 over the sizes and the XXH3-128 hashes of all 4 MiB blocks of the files in the order given, and over
/// `configuration`. Blocks are hashed in parallel. Names and places do not enter, so a copied model keeps its
/// fingerprint. File hashes come out of a cache while path, size, inode and the times of change are the same; the
/// cache's folder is $XDG_CACHE_HOME/kvscope/fingerprints (else ~/.cache/…), and a cache that cannot be written or
/// read is done without.
/// @throws CheckpointError if a file cannot be read
std::string fingerprint_files(const std::vector<std::filesystem::path>& files, std::string_view configuration);

}  // namespace kvscope::checkpoint
