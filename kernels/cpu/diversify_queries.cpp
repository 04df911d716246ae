#include "kernels/diversify_queries.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kvscope::kernels {

void diversify_queries(const float* queries, int64_t w, int64_t d, double lambda, float* out) {
    std::vector<double> direction(static_cast<size_t>(d), 0.0);
    for (int64_t i = 0; i < w; ++i) {
        for (int64_t c = 0; c < d; ++c) direction[c] += queries[i * d + c];
    }
    double norm = 0.0;
    for (double& value : direction) {
        value /= static_cast<double>(w);
        norm += value * value;
    }
    norm = std::sqrt(norm);
    if (!(norm > 0.0)) {
        std::copy(queries, queries + w * d, out);
        return;
    }
    for (double& value : direction) value /= norm;
    for (int64_t i = 0; i < w; ++i) {
        const float* query = queries + i * d;
        double along = 0.0;
        for (int64_t c = 0; c < d; ++c) along += query[c] * direction[c];
        for (int64_t c = 0; c < d; ++c) {
            const double residual = query[c] - along * direction[c];
            out[i * d + c] = static_cast<float>(query[c] + lambda * residual);
        }
    }
}

}  // namespace kvscope::kernels
