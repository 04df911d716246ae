#pragma once

#include <filesystem>
#include <memory>

#include "engine/checkpoint/checkpoint.h"

namespace kvscope::checkpoint {

/// Opens a GGUF file, or a split set by its first file. @throws CheckpointError
[[nodiscard]] std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path);

}  // namespace kvscope::checkpoint
