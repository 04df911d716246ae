#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace kvscope::cli {

/// A new folder for temporary files, which is removed with its contents.
class TemporaryFolder {
 public:
    /// @throws std::runtime_error if the folder cannot be created
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "kvscope-XXXXXX").string();
        if (!mkdtemp(name.data()))
            throw std::runtime_error(fmt::format("no folder can be created in {}: {}",
                                                 std::filesystem::temp_directory_path().string(),
                                                 std::error_code(errno, std::generic_category()).message()));
        path_ = name;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code none;
        std::filesystem::remove_all(path_, none);
    }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
    std::filesystem::path path_;
};

}  // namespace kvscope::cli
