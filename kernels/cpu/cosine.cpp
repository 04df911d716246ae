#include "kernels/cosine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu_features.h"

namespace kvscope::kernels {

namespace {

KVSCOPE_INLINE double cosine_of(double dot, double square_a, double square_b) {
    if (square_a <= 0.0 || square_b <= 0.0) return 0.0;
    return std::clamp(dot / std::sqrt(square_a * square_b), -1.0, 1.0);
}

/// a . b and b . b in f32, as vectors have at most a few hundred elements.
template <class T>
KVSCOPE_INLINE void dots(const T* a, const T* b, int64_t d, float& ab, float& bb) {
    float sum_ab = 0.0f, sum_bb = 0.0f;
#pragma omp simd reduction(+ : sum_ab, sum_bb)
    for (int64_t c = 0; c < d; ++c) {
        const float x = to_float(a[c]), y = to_float(b[c]);
        sum_ab += x * y;
        sum_bb += y * y;
    }
    ab = sum_ab;
    bb = sum_bb;
}

/// Sum of the cosines of vectors first … last-1 of each head with their successors. Tokens are the outer loop, since a
/// projection leaves a token's heads side by side.
template <class T>
KVSCOPE_INLINE double chains_body(const HeadVectors& vectors, int64_t first, int64_t last, float* squares) {
    const T* data = static_cast<const T*>(vectors.data);
    float unused = 0.0f;
    for (int64_t h = 0; h < vectors.n_heads; ++h) {
        const T* vector = data + h * vectors.head_stride + first * vectors.row_stride;
        dots(vector, vector, vectors.d, unused, squares[h]);
    }
    double sum = 0.0;
    for (int64_t i = first; i < last; ++i) {
        for (int64_t h = 0; h < vectors.n_heads; ++h) {
            const T* vector = data + h * vectors.head_stride + i * vectors.row_stride;
            float dot = 0.0f, next_square = 0.0f;
            dots(vector, vector + vectors.row_stride, vectors.d, dot, next_square);
            sum += cosine_of(dot, squares[h], next_square);
            squares[h] = next_square;
        }
    }
    return sum;
}

using Chains = double (*)(const HeadVectors&, int64_t, int64_t, float*);

template <class T>
double chains_generic(const HeadVectors& vectors, int64_t first, int64_t last, float* squares) {
    return chains_body<T>(vectors, first, last, squares);
}
#ifdef KVSCOPE_AVX2
template <class T>
KVSCOPE_AVX2 double chains_avx2(const HeadVectors& vectors, int64_t first, int64_t last, float* squares) {
    return chains_body<T>(vectors, first, last, squares);
}
template <class T>
KVSCOPE_AVX512 double chains_avx512(const HeadVectors& vectors, int64_t first, int64_t last, float* squares) {
    return chains_body<T>(vectors, first, last, squares);
}
#endif

template <class T>
Chains chains() {
#ifdef KVSCOPE_AVX2
    if (simd_level() >= SimdLevel::avx512) return chains_avx512<T>;
    if (simd_level() >= SimdLevel::avx2) return chains_avx2<T>;
#endif
    return chains_generic<T>;
}

template <class T>
double adjacent_cosine_of(const HeadVectors& vectors) {
    constexpr int64_t kBlock = 64;  // tokens summed in one go; the blocks' sums are added in order
    const int64_t pairs = vectors.n - 1;
    const int64_t blocks = (pairs + kBlock - 1) / kBlock;
    std::vector<double> sums(static_cast<size_t>(blocks));
    const Chains sum_of_chains = chains<T>();
#pragma omp parallel
    {
        std::vector<float> squares(static_cast<size_t>(vectors.n_heads));
#pragma omp for schedule(static)
        for (int64_t b = 0; b < blocks; ++b) {
            sums[b] = sum_of_chains(vectors, b * kBlock, std::min(pairs, (b + 1) * kBlock), squares.data());
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
