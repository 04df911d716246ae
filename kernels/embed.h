#pragma once

#include <cstdint>
#include <span>

#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

/// Single rows of a weight, as f32 of what expand_weights makes of them in `dtype`.
struct Embed {
    WeightFormat format = WeightFormat::f32;
    int64_t columns = 0;
    const void* weight = nullptr;       ///< rows of `columns` in the format
    DType dtype = DType::f32;           ///< f32 or bf16
    std::span<const int32_t> ids = {};  ///< rows, in the processor's memory whatever the device
    float* out = nullptr;               ///< (ids, columns)
};

/// @throws std::invalid_argument as expand_weights does
void embed(const Embed& problem);

}  // namespace kvscope::kernels
