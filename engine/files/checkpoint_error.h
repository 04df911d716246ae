#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace kvscope::checkpoint {

/// A model on disk that cannot be used: damaged, incomplete, or of a kind that is not supported. The message names the
/// file, what was expected and what was found, and is fit for a terminal and for JSON whatever the file held: bytes
/// that are not UTF-8 and control characters are replaced.
class CheckpointError : public std::runtime_error {
 public:
    explicit CheckpointError(const std::string& message);
    CheckpointError(const std::filesystem::path& file, const std::string& what);
};

}  // namespace kvscope::checkpoint
