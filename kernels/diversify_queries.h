#pragma once

#include <cstdint>

namespace kvscope::kernels {

/// ApertureKV's query diversification (Eq. 9-11) of one head: u = mean of the rows of Q (w, d), R = what is left of Q
/// after its projection on u is taken away, out = Q + lambda R. A zero u leaves Q as it is. f64 inside; queries may be
/// out.
void diversify_queries(const float* queries, int64_t w, int64_t d, double lambda, float* out);

}  // namespace kvscope::kernels
