#pragma once

#include <filesystem>

#include "engine/checkpoint/config.h"

namespace kvscope::checkpoint {

/// Reads config.json as written by transformers 4 and 5. Reads the first and last token of a text from the tokenizer's
/// files.
/// @throws CheckpointError for damaged files and unsupported models
ModelConfig read_hf_config(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
