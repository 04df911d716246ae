#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"

namespace kvscope::checkpoint {

[[nodiscard]] std::string supported_models();

/// Returns why a model type ("qwen3_moe") is not supported, such as "a mixture of experts", or an empty text.
[[nodiscard]] std::string kind_of_refused_model(const std::string& name);

/// Checks that sizes and rotary parameters are plausible and consistent. @throws CheckpointError
void check_config(const ModelConfig& config, const std::filesystem::path& file);

[[nodiscard]] double default_yarn_attention_factor(double factor);

struct ExpectedTensor {
    std::string name;
    std::vector<int64_t> shape;
};

/// Returns all required tensors. Includes lm_head.weight unless embeddings are tied.
[[nodiscard]] std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

[[nodiscard]] std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace kvscope::checkpoint
