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

/// Tokens generated greedily behind a draft cache, and what their attention was computed from.
struct LookAhead {
    std::vector<int32_t> ids;                 ///< (n) each of them read back
    std::vector<std::vector<float>> queries;  ///< per layer (H, n, d) f32, post-RoPE
    std::vector<at::Tensor> keys;             ///< per layer (G, n, d) of the model's type, post-RoPE
    std::string error;                        ///< why there are none of these; empty where they are there
};

/// Decodes all drafts as one batch, each for its own number of tokens (at least one), whatever they are: an end-of-text
/// token does not end the lookahead. The drafts grow by the tokens. One whose logits hold NaN has an error, the others
/// go on.
/// @param position of the first token, the drafts keep the prompt's positions
/// @throws Cancelled
std::vector<LookAhead> look_ahead(const Transformer& model, std::span<RunCache* const> drafts,
                                  std::span<const int64_t> n_tokens, int64_t position,
                                  std::span<const float> last_logits, Progress& progress);

}  // namespace kvscope::engine
