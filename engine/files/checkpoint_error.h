#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace kvscope::checkpoint {

/// An unusable model on disk. The message names the file, the expected and the found content.
struct CheckpointError : std::runtime_error {
    explicit CheckpointError(const std::string& message);
    CheckpointError(const std::filesystem::path& file, const std::string& what);
};

/// Returns action(). Adds the file to the message of any other std::runtime_error.
template <class Action>
auto with_file_in_errors(const std::filesystem::path& file, Action action) -> decltype(action()) {
    try {
        return action();
    } catch (const CheckpointError&) {
        throw;
    } catch (const std::runtime_error& error) {
        throw CheckpointError(file, error.what());
    }
}

}  // namespace kvscope::checkpoint
