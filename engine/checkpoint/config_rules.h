#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"

namespace kvscope::checkpoint {

/// Returns one line that names every supported family, for error messages.
std::string supported_models();

/// Returns the text with A to Z in lower case, to search for a family's name.
std::string lower_case(std::string text);

/// Returns the reason why a model type ("qwen3_moe", "Qwen2VLForConditionalGeneration") is not supported: a mixture of
/// experts, a vision model, ... Empty if the type is unknown.
std::string kind_of_refused_model(const std::string& name);

/// Checks that sizes are positive, plausible and consistent, and that rotary parameters are valid.
/// @throws CheckpointError that names `file`
void check_config(const ModelConfig& config, const std::filesystem::path& file);

/// YaRN's default factor of cos and sin: 0.1 ln(factor) + 1.
double default_yarn_attention_factor(double factor);

/// A tensor that the configuration requires, with its Hugging Face name.
struct ExpectedTensor {
    std::string name;
    std::vector<int64_t> shape;
};

/// Returns all required tensors; lm_head.weight only if embeddings are not tied.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

/// Returns "(576, 1536)".
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace kvscope::checkpoint
