#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// A file in the user's cache, $XDG_CACHE_HOME/kvscope (else ~/.cache/kvscope): what it goes by, its identity, and
/// behind that what is kept. A cache that cannot be read or written is done without, and what is not as it was written
/// is not found.
class CacheEntry {
 public:
    /// @param folder   in the cache
    /// @param name     of the file
    /// @param identity all that what is kept depends on
    CacheEntry(const std::string& folder, const std::string& name, std::string identity);

    /// What is kept, where it has this size.
    std::optional<std::string> find(uint64_t n_bytes) const;
    /// The whole file comes about at once.
    void store(std::string_view kept) const;

 private:
    std::string head_;            ///< the identity's size and itself
    std::filesystem::path path_;  ///< empty where there is no place for a cache
};

}  // namespace kvscope::checkpoint
