#pragma once

#include <filesystem>

#include "engine/checkpoint/config.h"

namespace kvscope::checkpoint {

/// Reads config.json of transformers 4 and 5. @throws CheckpointError for damaged files and unsupported models
ModelConfig read_hf_config(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
