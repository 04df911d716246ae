#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// out = silu(gate) * up with silu(x) = x / (1 + exp(-x)), in f32 with one rounding. For the output (rows, 2 * dim) of
/// a fused projection, use up = gate + dim and 2 * dim as both strides.
struct SwiGlu {
    DType dtype = DType::bf16;  ///< type of gate, up and out: f32 or bf16
    int64_t n_rows = 0;
    int64_t dim = 0;
    const void* gate = nullptr;  ///< (n_rows, dim)
    const void* up = nullptr;    ///< (n_rows, dim)
    int64_t in_stride = 0;       ///< elements between rows of gate and of up; 0 means dim
    void* out = nullptr;         ///< (n_rows, dim); may be `gate`
    int64_t out_stride = 0;      ///< elements between rows of out; 0 means dim
};
void swiglu(const SwiGlu& problem);

}  // namespace kvscope::kernels
