#pragma once

#include <cstdint>
#include <span>

#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

/// Gathers rows of a weight as f32. Values equal the results of expand_weights() in `dtype`.
struct Embed {
    WeightFormat format = WeightFormat::f32;
    int64_t columns = 0;
    const void* weight = nullptr;       ///< rows of `columns` weights in `format`
    DType dtype = DType::f32;           ///< f32 or bf16
    std::span<const int32_t> ids = {};  ///< row indices, always in host memory
    float* out = nullptr;               ///< (ids, columns)
};

/// Throws like expand_weights().
void embed(const Embed& problem);

}  // namespace kvscope::kernels
