#pragma once

#include <cstdint>

namespace kvscope::kernels {

/// out = in - ln sum exp in for each row, in f32, independent of other rows and threads. NaN spreads to its row.
struct LogSoftmax {
    int64_t n_rows = 0;
    int64_t n = 0;
    const float* in = nullptr;  ///< (n_rows, n)
    float* out = nullptr;       ///< (n_rows, n); may be `in`
};
void log_softmax(const LogSoftmax& problem);

/// KL(p || q) = sum p (ln p - ln q) of each row. Rounding can make the result slightly negative.
struct DivergenceOfLogs {
    int64_t n_rows = 0;
    int64_t n = 0;
    const float* log_p = nullptr;  ///< (n_rows, n)
    const float* log_q = nullptr;  ///< (n_rows, n)
    float* out = nullptr;          ///< (n_rows)
};
void divergence_of_logs(const DivergenceOfLogs& problem);

}  // namespace kvscope::kernels
