#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// A file in the user's cache, $XDG_CACHE_HOME/kvscope (else ~/.cache/kvscope): an identity followed by data. A cache
/// that cannot be read or written is ignored, and damaged data are not found.
class CacheEntry {
 public:
    /// @param identity everything that the cached data depend on
    CacheEntry(const std::string& folder, const std::string& name, std::string identity);

    /// Returns the cached data if they have this size.
    std::optional<std::string> find(uint64_t n_bytes) const;
    /// Writes the whole file atomically.
    void store(std::string_view kept) const;

 private:
    std::string head_;            ///< length of the identity, followed by the identity
    std::filesystem::path path_;  ///< empty if there is no cache folder
};

}  // namespace kvscope::checkpoint
