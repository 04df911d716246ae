#pragma once

#include <functional>
#include <map>
#include <string>

#include "engine/checkpoint/config.h"
#include "engine/files/gguf_file.h"

namespace kvscope::checkpoint {

/// All tensors of a GGUF file or split set, by the names in the file.
using GgufTensors = std::map<std::string, const GgufTensor*, std::less<>>;

/// Whether llama.cpp's converter stores the rows of Q and K of this architecture in the order of rotated pairs.
bool gguf_permutes_qk(std::string_view architecture);

/// A model's configuration out of a GGUF file's metadata and of which tensors there are. `rope_factors` and
/// `config_json` are left empty.
/// @throws CheckpointError for models that are not supported and for metadata that is missing or of the wrong type
ModelConfig read_gguf_config(const GgufFile& file, const GgufTensors& tensors);

/// The configuration in the spelling of a Hugging Face config.json.
std::string config_as_json(const ModelConfig& config);

}  // namespace kvscope::checkpoint
