#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/common/progress.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Tokens that a draft cache generated greedily, with their queries and keys.
struct LookAhead {
    std::vector<int32_t> ids;                 ///< (n) generated tokens, all of which were read
    std::vector<std::vector<float>> queries;  ///< per layer (H, n, d) f32, after RoPE
    std::vector<at::Tensor> keys;             ///< per layer (G, n, d) in the model's type, after RoPE
    std::string error;                        ///< why the lookahead failed; empty if it succeeded
};

/// Decodes all drafts as one batch, each for its own number of tokens (at least one), ignoring end-of-text tokens.
/// If a draft's logits contain NaN, its result contains an error and the others continue.
[[nodiscard]] std::vector<LookAhead> look_ahead(const Transformer& model, std::span<RunCache* const> drafts,
                                                std::span<const int64_t> n_tokens, int64_t position,
                                                std::span<const float> last_logits, Progress& progress);

}  // namespace kvscope::engine
