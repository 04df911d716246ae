#pragma once

#include <cstdint>

namespace kvscope::kernels {

enum class HeadReduction { mean, max, sum };

/// One row per group of `group` successive rows: in (n_groups * group, n) with in_stride between rows, out (n_groups,
/// n) with out_stride. Summed in f64, then rounded to the result's type. Numbers of `in` count `factor` times, the
/// product rounded to f32.
void reduce_heads(HeadReduction kind, const float* in, int64_t in_stride, int64_t n_groups, int64_t group, int64_t n,
                  float* out, int64_t out_stride, float factor = 1.0f);
void reduce_heads(HeadReduction kind, const float* in, int64_t in_stride, int64_t n_groups, int64_t group, int64_t n,
                  double* out, int64_t out_stride, float factor = 1.0f);

}  // namespace kvscope::kernels
