#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Storage of a weight's rows: plain numbers, or GGUF blocks (ggml-common.h), little-endian.
enum class WeightFormat { f32, bf16, f16, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k };

struct WeightBlock {
    int64_t n = 1;     ///< weights per block
    size_t bytes = 0;  ///< bytes per block
};

[[nodiscard]] constexpr WeightBlock block_size_of_format(WeightFormat format) {
    constexpr WeightBlock blocks[] = {{1, 4},   {1, 2},    {1, 2},     {32, 18},   {32, 20},   {32, 22},  {32, 24},
                                      {32, 34}, {256, 84}, {256, 110}, {256, 144}, {256, 176}, {256, 210}};
    return blocks[static_cast<size_t>(format)];
}

/// Returns the bytes of a row of n weights. n must be a multiple of the block size.
[[nodiscard]] constexpr size_t row_bytes(WeightFormat format, int64_t n) {
    const WeightBlock block = block_size_of_format(format);
    return static_cast<size_t>(n / block.n) * block.bytes;
}

[[nodiscard]] constexpr WeightFormat weight_format_of(DType dtype) {
    return dtype == DType::f32 ? WeightFormat::f32 : dtype == DType::bf16 ? WeightFormat::bf16 : WeightFormat::f16;
}

struct ExpandWeights {
    WeightFormat format = WeightFormat::f32;
    int64_t n_rows = 0;
    int64_t in = 0;              ///< weights per row, a multiple of the block size
    const void* rows = nullptr;  ///< (n_rows, in) in `format`
    DType dtype = DType::f32;    ///< f32: exact; bf16: rounded to nearest, ties to even
    void* out = nullptr;         ///< (n_rows, in)
};

/// Throws std::invalid_argument for rows with incomplete blocks, null arrays, or dtype f16.
void expand_weights(const ExpandWeights& problem);

}  // namespace kvscope::kernels
