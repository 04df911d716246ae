#pragma once

#include <filesystem>
#include <memory>

#include "engine/checkpoint/checkpoint.h"

namespace kvscope::checkpoint {

/// Opens a Hugging Face directory with model.safetensors, or with model.safetensors.index.json and its shards.
/// @param weights the only file to read, or empty
std::unique_ptr<Checkpoint> open_hf_directory(const std::filesystem::path& directory,
                                              const std::filesystem::path& weights = {});

}  // namespace kvscope::checkpoint
