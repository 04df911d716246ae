#pragma once

#include <functional>
#include <map>
#include <string>

#include "engine/checkpoint/config.h"
#include "engine/files/gguf_file.h"

namespace kvscope::checkpoint {

using GgufTensors = std::map<std::string, const GgufTensor*, std::less<>>;

/// Reads the configuration from metadata and tensor names, except `rope_factors` and `config_json`.
/// @throws CheckpointError if the model is not supported, or metadata is missing or has the wrong type
[[nodiscard]] ModelConfig read_gguf_config(const GgufFile& file, const GgufTensors& tensors);

[[nodiscard]] std::string config_as_json(const ModelConfig& config);

}  // namespace kvscope::checkpoint
