#pragma once

#include <cstdint>

namespace kvscope::kernels {

/// out = softmax(in / temperature) over n values, in f64. `out` may be `in`. n = 0 does nothing.
void softmax(const double* in, int64_t n, double temperature, double* out);

}  // namespace kvscope::kernels
