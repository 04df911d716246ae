#pragma once

#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Computes cosines and sines of positions in f64 and stores them as f32, (n_positions, d / 2) each.
/// @param inverse_frequencies (d / 2) radians per position, including the model's rope scaling
/// @param attention_factor factor for both tables (YaRN, LongRoPE); otherwise 1
void rope_table(std::span<const int64_t> positions, std::span<const double> inverse_frequencies,
                double attention_factor, float* cosines, float* sines);

/// Rotates vectors in place in Hugging Face's convention, in f32 with one rounding. Rotations add up.
///   x'[c]         = x[c] cos - x[c + d/2] sin
///   x'[c + d / 2] = x[c + d/2] cos + x[c] sin
struct Rope {
    DType dtype = DType::bf16;  ///< f32 or bf16
    int64_t n_tokens = 0;
    int n_heads = 0;
    int head_dim = 0;                ///< d, even
    void* x = nullptr;               ///< element (t, h, c) at t * token_stride + h * head_stride + c
    int64_t token_stride = 0;        ///< elements between tokens
    int64_t head_stride = 0;         ///< elements between heads; 0 means d
    const float* cosines = nullptr;  ///< (n_tokens, d / 2)
    const float* sines = nullptr;    ///< (n_tokens, d / 2)
};
void rope(const Rope& problem);

}  // namespace kvscope::kernels
