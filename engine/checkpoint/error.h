#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace kvscope::checkpoint {

/// A model on disk that cannot be used: damaged, incomplete, or of a kind that is not supported. The message names the
/// file, what was expected and what was found.
class CheckpointError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
    CheckpointError(const std::filesystem::path& file, const std::string& what)
        : std::runtime_error(file.string() + ": " + what) {}
};

}  // namespace kvscope::checkpoint
