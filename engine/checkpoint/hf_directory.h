#pragma once

#include <filesystem>
#include <memory>

#include "engine/checkpoint/checkpoint.h"

namespace kvscope::checkpoint {

/// Opens a directory with model.safetensors or shards and their index. @param weights the only file to read, or empty
std::unique_ptr<Checkpoint> open_hf_directory(const std::filesystem::path& directory,
                                              const std::filesystem::path& weights = {});

}  // namespace kvscope::checkpoint
