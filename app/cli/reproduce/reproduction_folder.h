#pragma once

#include <filesystem>

namespace kvscope::cli {

/// Reserves the folder of a reproduction for this process, and creates it if necessary. The file `reproduction` marks
/// it.
class ReproductionFolder {
 public:
    /// @throws std::invalid_argument for a folder with other contents; std::runtime_error if another process uses the
    /// folder; FileNotWritten
    explicit ReproductionFolder(const std::filesystem::path& path);
    ~ReproductionFolder();
    ReproductionFolder(const ReproductionFolder&) = delete;
    ReproductionFolder& operator=(const ReproductionFolder&) = delete;

 private:
    int marker_ = -1;
};

}  // namespace kvscope::cli
