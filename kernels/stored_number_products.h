#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace kvscope::kernels {

/// The `width` numbers that a cache stores for each of n entries.
struct StoredNumbers {
    DType dtype = DType::f32;    ///< f32 or bf16
    const void* data = nullptr;  ///< element (i, c) is at i * stride + c
    int64_t stride = 0;          ///< elements between entries, at least `width`
    int64_t n = 0;
    int width = 0;
};

/// out (n, columns) += numbers * map (width, columns), in f32 on the calling thread. Entries are independent.
void add_product_with_map(const StoredNumbers& numbers, const float* map, int columns, float* out);

/// sums (n_queries, width) += sum over i of weights[query * weight_stride + i] * entry i, in f32 on the calling thread.
void add_weighted(const StoredNumbers& numbers, const float* weights, int64_t weight_stride, int n_queries,
                  float* sums);

}  // namespace kvscope::kernels
