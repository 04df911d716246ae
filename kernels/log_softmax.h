#pragma once

#include <cstdint>

namespace kvscope::kernels {

/// Rows of logits to logarithms of probabilities: out = in - ln sum exp in, in f32. A row with a NaN becomes NaN
/// throughout. What becomes of a row depends neither on the other rows nor on the number of threads.
struct LogSoftmax {
    int64_t n_rows = 0;
    int64_t n = 0;
    const float* in = nullptr;  ///< (n_rows, n)
    float* out = nullptr;       ///< (n_rows, n); may be in
};
void log_softmax(const LogSoftmax& problem);

/// KL(p || q) = sum p (ln p - ln q) of rows of logarithms, one by one; as rounding leaves it, so that it may lie just
/// below 0.
struct DivergenceOfLogs {
    int64_t n_rows = 0;
    int64_t n = 0;
    const float* log_p = nullptr;  ///< (n_rows, n)
    const float* log_q = nullptr;  ///< (n_rows, n)
    float* out = nullptr;          ///< (n_rows)
};
void divergence_of_logs(const DivergenceOfLogs& problem);

}  // namespace kvscope::kernels
