#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"

namespace kvscope::checkpoint {

/// One line that names every supported family, for messages of refusal.
std::string supported_models();

/// With A to Z as small letters: for finding a family's name in a text.
std::string lower_case(std::string text);

/// Why a kind of model is refused, in words, from what files call it ("qwen3_moe", "Qwen2VLForConditionalGeneration"):
/// a mixture of experts, a vision model, …; empty if nothing is known about it.
std::string kind_of_refused_model(const std::string& name);

/// Checks that sizes are positive, within reason, consistent with each other, and rotary parameters usable.
/// @throws CheckpointError naming `file`
void check_config(const ModelConfig& config, const std::filesystem::path& file);

/// YaRN's factor on cos and sin where a file does not give one: 0.1 ln(factor) + 1.
double default_yarn_attention_factor(double factor);

/// A tensor the configuration calls for, under its Hugging Face name.
struct ExpectedTensor {
    std::string name;
    std::vector<int64_t> shape;
};

/// All of them; lm_head.weight only where embeddings are not tied.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

/// "(576, 1536)"
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace kvscope::checkpoint
