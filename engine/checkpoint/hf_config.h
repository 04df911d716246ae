#pragma once

#include <filesystem>

#include "engine/checkpoint/config.h"

namespace kvscope::checkpoint {

/// Reads config.json in the formats and with the defaults of transformers 4 and 5. Reads the first and last token of a
/// text from generation_config.json, tokenizer_config.json and tokenizer.json.
/// @throws CheckpointError for damaged files and unsupported models
ModelConfig read_hf_config(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
