#include "kernels/cosine.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/targets.h"
#include "kernels/cpu_features.h"

namespace kvscope::kernels {

namespace {

KVSCOPE_INLINE double dot_body(const float* a, const float* b, int64_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}

using Dot = double (*)(const float*, const float*, int64_t);

double dot_generic(const float* a, const float* b, int64_t n) { return dot_body(a, b, n); }
#ifdef KVSCOPE_AVX2
KVSCOPE_AVX2 double dot_avx2(const float* a, const float* b, int64_t n) { return dot_body(a, b, n); }
KVSCOPE_AVX512 double dot_avx512(const float* a, const float* b, int64_t n) { return dot_body(a, b, n); }
#endif

Dot dot_of_level() {
#ifdef KVSCOPE_AVX2
    if (simd_level() >= SimdLevel::avx512) return dot_avx512;
    if (simd_level() >= SimdLevel::avx2) return dot_avx2;
#endif
    return dot_generic;
}

double cosine_of(double dot, double square_a, double square_b) {
    if (square_a <= 0.0 || square_b <= 0.0) return 0.0;
    return std::clamp(dot / std::sqrt(square_a * square_b), -1.0, 1.0);
}

}  // namespace

double dot(const float* a, const float* b, int64_t n) { return dot_of_level()(a, b, n); }

void cosine_matrix(const float* vectors, int64_t n, int64_t d, int64_t row_stride, float* out) {
    const Dot dot_of = dot_of_level();
    const auto dot = [&](int64_t i, int64_t j) {
        return dot_of(vectors + i * row_stride, vectors + j * row_stride, d);
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
