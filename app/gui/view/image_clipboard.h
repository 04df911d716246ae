#pragma once

#include <filesystem>

namespace kvscope::gui {

/// A file for one picture on its way to the clipboard; goes with this object.
class TemporaryPng {
 public:
    /// @throws std::runtime_error where no file can be made
    TemporaryPng();
    ~TemporaryPng();
    TemporaryPng(const TemporaryPng&) = delete;
    TemporaryPng& operator=(const TemporaryPng&) = delete;
    const std::filesystem::path& path() const { return path_; }

 private:
    std::filesystem::path path_;
};

/// A PNG onto the clipboard, through wl-copy on Wayland and xclip on X11: GLFW carries texts alone.
/// @throws std::runtime_error with the package to install where the program is missing
void copy_png(const std::filesystem::path& png);

}  // namespace kvscope::gui
