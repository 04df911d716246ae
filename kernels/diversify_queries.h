#pragma once

#include <cstdint>

namespace kvscope::kernels {

/// ApertureKV's query diversification (Eq. 9-11) of one head: u = mean row of Q (w, d), R = Q minus its projection on
/// u, out = Q + lambda R. If u is zero, out = Q. Computed in f64; `out` may be `queries`.
void diversify_queries(const float* queries, int64_t w, int64_t d, double lambda, float* out);

}  // namespace kvscope::kernels
