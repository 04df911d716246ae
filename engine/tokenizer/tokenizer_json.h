#pragma once

#include <filesystem>
#include <memory>

#include "engine/tokenizer/tokenizer.h"

namespace kvscope::checkpoint {

/// The tokenizer of a Hugging Face directory: tokenizer.json with a BPE model, encoded exactly as the library
/// `tokenizers` does (its truncation and padding settings are ignored, as transformers does unless told otherwise).
/// End-of-generation ids are those of generation_config.json, else config.json, else tokenizer_config.json's eos_token.
/// @throws CheckpointError naming the file and the place in it that is damaged or not supported
std::unique_ptr<Tokenizer> open_json_tokenizer(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
