#include "kernels/cosine.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kvscope::kernels {

namespace {

double cosine_of(double dot, double square_a, double square_b) {
    if (square_a <= 0.0 || square_b <= 0.0) return 0.0;
    return std::clamp(dot / std::sqrt(square_a * square_b), -1.0, 1.0);
}

}  // namespace

void cosine_matrix(const float* vectors, int64_t n, int64_t d, int64_t row_stride, float* out) {
    auto dot = [&](int64_t i, int64_t j) {
        double sum = 0.0;
        const float *a = vectors + i * row_stride, *b = vectors + j * row_stride;
        for (int64_t c = 0; c < d; ++c) sum += static_cast<double>(a[c]) * b[c];
        return sum;
    };
    std::vector<double> squares(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) squares[i] = dot(i, i);
    for (int64_t i = 0; i < n; ++i) {
        out[i * n + i] = 1.0f;
        for (int64_t j = i + 1; j < n; ++j) {
            out[i * n + j] = out[j * n + i] = static_cast<float>(cosine_of(dot(i, j), squares[i], squares[j]));
        }
    }
}

double mean_off_diagonal(const float* matrix, int64_t n) {
    if (n < 2) return 0.0;
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) sum += i == j ? 0.0 : matrix[i * n + j];
    }
    return sum / static_cast<double>(n * (n - 1));
}

}  // namespace kvscope::kernels
