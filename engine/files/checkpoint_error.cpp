#include "engine/files/checkpoint_error.h"

#include <algorithm>

#include "common/utf8.h"

namespace kvscope::checkpoint {
namespace {

std::string printable(const std::string& message) {
    std::string text = utf8_lossy(message);
    std::replace_if(
        text.begin(), text.end(),
        [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == '\x7f'; }, '?');
    return text;
}

}  // namespace

CheckpointError::CheckpointError(const std::string& message) : std::runtime_error(printable(message)) {}

CheckpointError::CheckpointError(const std::filesystem::path& file, const std::string& what)
    : CheckpointError(file.string() + ": " + what) {}

}  // namespace kvscope::checkpoint
