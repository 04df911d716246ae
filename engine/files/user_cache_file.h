#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kvscope::checkpoint {

/// A file in the user's cache (~/.cache/kvscope). Damaged entries and an unusable cache are ignored.
class UserCacheFile {
 public:
    /// @param identity everything that the cached data depend on
    UserCacheFile(const std::string& folder, const std::string& name, std::string identity);

    [[nodiscard]] std::optional<std::string> find(uint64_t n_bytes) const;
    /// Replaces the whole file atomically.
    void store(std::string_view kept) const;

 private:
    std::string head_;            ///< length of the identity, followed by the identity
    std::filesystem::path path_;  ///< empty if there is no cache folder
};

}  // namespace kvscope::checkpoint
