#pragma once

#include <cstdint>

namespace kvscope::kernels {

enum class HeadReduction { mean, max, sum };

/// Reduces each group of `group` successive rows of in (n_groups * group, n) to one row of out (n_groups, n).
/// Multiplies inputs by `factor` in f32, sums in f64, and rounds to the output type.
void reduce_heads(HeadReduction kind, const float* in, int64_t in_stride, int64_t n_groups, int64_t group, int64_t n,
                  float* out, int64_t out_stride, float factor = 1.0f);
void reduce_heads(HeadReduction kind, const float* in, int64_t in_stride, int64_t n_groups, int64_t group, int64_t n,
                  double* out, int64_t out_stride, float factor = 1.0f);

}  // namespace kvscope::kernels
