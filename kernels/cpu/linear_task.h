#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

/// Outputs of a task at most, and floats between the rows of its result.
inline constexpr int64_t kLinearPanel = 48;

/// A thread's share of a product: some rows of x times some rows of the weight.
struct LinearTask {
    const void* x = nullptr;  ///< (n_rows, packed), see LinearKernel::pack_rows
    int64_t n_rows = 0;
    const void* weight = nullptr;  ///< (n_outputs, in), its rows row_bytes apart
    size_t row_bytes = 0;
    WeightFormat format = WeightFormat::f32;
    void* decoded = nullptr;  ///< scratch of LinearKernel::decoded_bytes where the format is not that of x
    int64_t in = 0;
    int64_t n_outputs = 0;  ///< 1 ... kLinearPanel
    const float* bias = nullptr;
    void* y = nullptr;  ///< (n_rows, n_outputs)
    DType y_dtype = DType::f32;
    int64_t y_stride = 0;
    float* result = nullptr;  ///< scratch (n_rows, kLinearPanel)
    /// Scratch of LinearKernel::panel_bytes for a copy of the weights in the order in which they are read, which pays
    /// for many rows; nullptr reads them where they lie. The result is the same.
    void* packed_weight = nullptr;
};

/// How one SIMD level multiplies one type. Scratch is 64-byte aligned.
struct LinearKernel {
    size_t (*packed_bytes)(int64_t in);  ///< of a packed row of x
    size_t (*panel_bytes)(int64_t in);   ///< of a task's packed weights
    size_t (*decoded_bytes)(int64_t in);
    void (*pack_rows)(const void* x, int64_t stride, int64_t n_rows, int64_t in, void* packed);
    void (*multiply)(const LinearTask& task);
};

}  // namespace kvscope::kernels
