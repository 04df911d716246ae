#pragma once

#include <filesystem>

namespace kvscope::gui {

/// A temporary PNG file, which the destructor removes.
class TemporaryPng {
 public:
    /// @throws std::runtime_error if the file cannot be created
    TemporaryPng();
    ~TemporaryPng();
    TemporaryPng(const TemporaryPng&) = delete;
    TemporaryPng& operator=(const TemporaryPng&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
    std::filesystem::path path_;
};

/// Copies a PNG file to the clipboard with wl-copy on Wayland or xclip on X11, because GLFW can only copy text.
/// @throws std::runtime_error with the name of the package to install if the program is missing
void copy_png_to_clipboard(const std::filesystem::path& png);

}  // namespace kvscope::gui
