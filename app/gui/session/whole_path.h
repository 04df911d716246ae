#pragma once

#include <filesystem>
#include <system_error>

namespace kvscope::gui {

/// From the root; as it is given where the working directory is gone. Throws nothing.
inline std::filesystem::path whole_path(const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(path, error);
    return error ? path : whole;
}

}  // namespace kvscope::gui
