#pragma once

#include <cstdlib>
#include <filesystem>

namespace kvscope {

/// Returns $XDG_CACHE_HOME/kvscope or ~/.cache/kvscope; empty if neither $XDG_CACHE_HOME nor $HOME is an absolute path.
[[nodiscard]] inline std::filesystem::path user_cache_folder() {
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
        return std::filesystem::path(cache) / "kvscope";
    if (const char* home = std::getenv("HOME"); home && *home == '/')
        return std::filesystem::path(home) / ".cache" / "kvscope";
    return {};
}

}  // namespace kvscope
