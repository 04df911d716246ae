#pragma once

#include <functional>
#include <map>
#include <string>

#include "engine/checkpoint/config.h"
#include "engine/files/gguf_file.h"

namespace kvscope::checkpoint {

/// All tensors of a GGUF file or split set, by their names in the file.
using GgufTensors = std::map<std::string, const GgufTensor*, std::less<>>;

/// Whether llama.cpp's converter stores the rows of Q and K of this architecture in the order of rotated pairs.
bool gguf_permutes_qk(std::string_view architecture);

/// Reads a model's configuration from metadata and tensor names, except `rope_factors` and `config_json`.
/// @throws CheckpointError if the model is not supported, or metadata is missing or has the wrong type
ModelConfig read_gguf_config(const GgufFile& file, const GgufTensors& tensors);

/// Returns the configuration in the format of a Hugging Face config.json.
std::string config_as_json(const ModelConfig& config);

}  // namespace kvscope::checkpoint
