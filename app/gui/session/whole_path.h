#pragma once

#include <filesystem>
#include <system_error>

namespace kvscope::gui {

/// Returns the absolute path, or `path` itself if there is no working directory. Does not throw.
[[nodiscard]] inline std::filesystem::path absolute_path(const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(path, error);
    return error ? path : whole;
}

}  // namespace kvscope::gui
