#pragma once

#include <filesystem>

#include "engine/checkpoint/config.h"

namespace kvscope::checkpoint {

/// Reads a Hugging Face directory's config.json, in the spellings of transformers 4 and 5 and with the defaults that
/// its model classes have, and what generation_config.json, tokenizer_config.json and tokenizer.json say about the
/// first and last token of a text.
/// @throws CheckpointError for damaged files and for models that are not supported
ModelConfig read_hf_config(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
