#pragma once

#include <filesystem>
#include <memory>

#include "engine/tokenizer/tokenizer.h"

namespace kvscope::checkpoint {

/// Opens the tokenizer of a Hugging Face directory: tokenizer.json with a BPE model, encoded as by `tokenizers` without
/// truncation and padding. End-of-generation ids come from generation_config.json, else config.json, else eos_token in
/// tokenizer_config.json. @throws CheckpointError that names the file and the field
std::unique_ptr<Tokenizer> open_json_tokenizer(const std::filesystem::path& directory);

}  // namespace kvscope::checkpoint
