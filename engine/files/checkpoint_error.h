#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace kvscope::checkpoint {

/// An unusable model on disk. The message names the file, the expected and the found content.
class CheckpointError : public std::runtime_error {
 public:
    explicit CheckpointError(const std::string& message);
    CheckpointError(const std::filesystem::path& file, const std::string& what);
};

}  // namespace kvscope::checkpoint
