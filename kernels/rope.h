#pragma once

#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Cosines and sines of positions, computed in double and stored as (n_positions, d / 2) f32 each.
/// @param positions (n_positions) token positions, or the differences by which keys are to be turned
/// @param inverse_frequencies (d / 2) radians per position, the model's rope scaling already applied
/// @param attention_factor multiplied into both (YaRN's and LongRoPE's); 1 for all other kinds
void rope_table(std::span<const int64_t> positions, std::span<const double> inverse_frequencies,
                double attention_factor, float* cosines, float* sines);

/// Rotates vectors in place, Hugging Face's convention: element c pairs with c + d / 2,
///   x'[c]         = x[c] cos - x[c + d/2] sin
///   x'[c + d / 2] = x[c + d/2] cos + x[c] sin,
/// all in f32, rounded once. Turning already rotated keys by a difference of positions moves them to new positions.
struct Rope {
    DType dtype = DType::bf16;  ///< f32 or bf16
    int64_t n_tokens = 0;
    int n_heads = 0;
    int head_dim = 0;                ///< d, even
    void* x = nullptr;               ///< element (t, h, c) at t * token_stride + h * head_stride + c
    int64_t token_stride = 0;        ///< elements
    int64_t head_stride = 0;         ///< elements; 0 means d
    const float* cosines = nullptr;  ///< (n_tokens, d / 2)
    const float* sines = nullptr;    ///< (n_tokens, d / 2)
};
void rope(const Rope& problem);

}  // namespace kvscope::kernels
