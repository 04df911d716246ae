#include "kernels/cosine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu_features.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define KVSCOPE_AVX2 __attribute__((target("avx2,fma")))
#define KVSCOPE_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma,prefer-vector-width=512")))
#endif
#define KVSCOPE_INLINE inline __attribute__((always_inline))

namespace kvscope::kernels {

namespace {

/// f32 sums, as vectors have at most a few hundred elements.
template <class T>
KVSCOPE_INLINE float dot_body(const T* a, const T* b, int64_t d) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < d; ++c) sum += to_float(a[c]) * to_float(b[c]);
    return sum;
}

double cosine_of(double dot, double square_a, double square_b) {
    if (square_a <= 0.0 || square_b <= 0.0) return 0.0;
    return std::clamp(dot / std::sqrt(square_a * square_b), -1.0, 1.0);
}

/// Sum of the cosines of rows first … last-1 with their successors.
template <class T>
KVSCOPE_INLINE double chain_body(const T* rows, int64_t row_stride, int64_t d, int64_t first, int64_t last) {
    double sum = 0.0;
    float square = dot_body(rows + first * row_stride, rows + first * row_stride, d);
    for (int64_t i = first; i < last; ++i) {
        const T* row = rows + i * row_stride;
        const T* next = row + row_stride;
        const float next_square = dot_body(next, next, d);
        sum += cosine_of(dot_body(row, next, d), square, next_square);
        square = next_square;
    }
    return sum;
}

template <class T>
using Chain = double (*)(const T*, int64_t, int64_t, int64_t, int64_t);

template <class T>
double chain_generic(const T* rows, int64_t row_stride, int64_t d, int64_t first, int64_t last) {
    return chain_body(rows, row_stride, d, first, last);
}
#ifdef KVSCOPE_AVX2
template <class T>
KVSCOPE_AVX2 double chain_avx2(const T* rows, int64_t row_stride, int64_t d, int64_t first, int64_t last) {
    return chain_body(rows, row_stride, d, first, last);
}
template <class T>
KVSCOPE_AVX512 double chain_avx512(const T* rows, int64_t row_stride, int64_t d, int64_t first, int64_t last) {
    return chain_body(rows, row_stride, d, first, last);
}
#endif

template <class T>
Chain<T> chain() {
#ifdef KVSCOPE_AVX2
    if (simd_level() >= SimdLevel::avx512) return chain_avx512<T>;
    if (simd_level() >= SimdLevel::avx2) return chain_avx2<T>;
#endif
    return chain_generic<T>;
}

template <class T>
double adjacent_cosine_of(const HeadVectors& vectors) {
    constexpr int64_t kBlock = 256;  // pairs summed in one go; the blocks' sums are added in order
    const int64_t pairs = vectors.n - 1;
    const int64_t blocks = (pairs + kBlock - 1) / kBlock;
    std::vector<double> sums(static_cast<size_t>(vectors.n_heads * blocks));
    const Chain<T> sum_of_chain = chain<T>();
    const T* data = static_cast<const T*>(vectors.data);
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t h = 0; h < vectors.n_heads; ++h) {
        for (int64_t b = 0; b < blocks; ++b) {
            sums[h * blocks + b] = sum_of_chain(data + h * vectors.head_stride, vectors.row_stride, vectors.d, b * kBlock,
                                                std::min(pairs, (b + 1) * kBlock));
        }
    }
    double sum = 0.0;
    for (double part : sums) sum += part;
    return sum / static_cast<double>(vectors.n_heads * pairs);
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

double adjacent_cosine(const HeadVectors& vectors) {
    if (vectors.n < 2 || vectors.n_heads < 1) return std::numeric_limits<double>::quiet_NaN();
    if (vectors.dtype == DType::f32) return adjacent_cosine_of<float>(vectors);
    if (vectors.dtype == DType::bf16) return adjacent_cosine_of<bf16>(vectors);
    throw std::invalid_argument("adjacent cosine: vectors of f32 or bf16 are needed");
}

}  // namespace kvscope::kernels
