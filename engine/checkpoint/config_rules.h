#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"

namespace kvscope::checkpoint {

/// Checks that sizes and rotary parameters are plausible and consistent. @throws CheckpointError
void check_config(const ModelConfig& config, const std::filesystem::path& file);

[[nodiscard]] double default_yarn_attention_factor(double factor);

struct ExpectedTensor {
    std::string name;      ///< the engine's name
    std::string hf, gguf;  ///< names in files
    std::vector<int64_t> shape;
    int64_t n_rotated_heads = 0;  ///< number of heads in the rows of the Q or K projection; 0 for other tensors
};

/// Returns all required tensors. Includes lm_head.weight unless embeddings are tied.
[[nodiscard]] std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

[[nodiscard]] std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace kvscope::checkpoint
