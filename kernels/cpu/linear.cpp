#include "kernels/linear.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/bf16.h"
#include "kernels/cpu_features.h"

#if defined(__x86_64__)
#include <immintrin.h>
// g++ 12 takes the deliberately undefined registers of its own intrinsics for ours (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace kvscope::kernels {
namespace {

// Rows of x that share one reading of the weight: their accumulators have to fit into the registers.
constexpr int rows_max = 12;

/// `m` rows of x (x_stride apart) times weight rows [begin, end), into y (y_stride apart) in f32.
struct Block {
    const void* x;
    int64_t x_stride;
    const void* weight;
    int64_t in;
    int64_t begin, end;
    float* y;
    int64_t y_stride;
};

template <class T>
[[gnu::always_inline]] inline float dot(const T* a, const T* b, int64_t n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += to_float(a[i]) * to_float(b[i]);
    return sum;
}

template <class T>
[[gnu::always_inline]] inline void block_plain(const Block& block, int m) {
    const auto* x = static_cast<const T*>(block.x);
    const auto* weight = static_cast<const T*>(block.weight);
    for (int64_t o = block.begin; o < block.end; ++o) {
        for (int row = 0; row < m; ++row)
            block.y[row * block.y_stride + o] = dot(x + row * block.x_stride, weight + o * block.in, block.in);
    }
}

void block_generic(const Block& block, int m, DType dtype) {
    dtype == DType::bf16 ? block_plain<bf16>(block, m) : block_plain<float>(block, m);
}

#if defined(__x86_64__)
#define KVSCOPE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define KVSCOPE_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")))

__attribute__((target("avx2,fma"))) void block_avx2(const Block& block, int m, DType dtype) {
    dtype == DType::bf16 ? block_plain<bf16>(block, m) : block_plain<float>(block, m);
}

/// R weight rows times M rows of x at once; every (row, output) has one accumulator that runs through `in` in order, so
/// that its result is the same whatever M and R are. Loops are unrolled by name, or the accumulators would live in
/// memory.
template <int M, int R>
KVSCOPE_AVX512 void tile_f32(const Block& block, int64_t o) {
    const auto* x = static_cast<const float*>(block.x);
    const float* w = static_cast<const float*>(block.weight) + o * block.in;
    __m512 sums[M * R];
#pragma GCC unroll 24
    for (int i = 0; i < M * R; ++i) sums[i] = _mm512_setzero_ps();
    const auto step = [&](int64_t i, __mmask16 mask)
        __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma"), always_inline)) {
        __m512 weights[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            weights[r] = _mm512_maskz_loadu_ps(mask, w + r * block.in + i);
        }
#pragma GCC unroll 12
        for (int m = 0; m < M; ++m) {
            const __m512 values = _mm512_maskz_loadu_ps(mask, x + m * block.x_stride + i);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) sums[m * R + r] = _mm512_fmadd_ps(values, weights[r], sums[m * R + r]);
        }
    };
    int64_t i = 0;
    for (; i + 16 <= block.in; i += 16) step(i, __mmask16(0xffff));
    if (i < block.in) step(i, static_cast<__mmask16>((1u << (block.in - i)) - 1));
#pragma GCC unroll 12
    for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) block.y[m * block.y_stride + o + r] = _mm512_reduce_add_ps(sums[m * R + r]);
    }
}

template <int M, int R>
KVSCOPE_AVX512_BF16 void tile_bf16(const Block& block, int64_t o) {
    const auto* x = static_cast<const bf16*>(block.x);
    const bf16* w = static_cast<const bf16*>(block.weight) + o * block.in;
    __m512 sums[M * R];
#pragma GCC unroll 24
    for (int i = 0; i < M * R; ++i) sums[i] = _mm512_setzero_ps();
    const auto step = [&](int64_t i, __mmask32 mask)
        __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma"), always_inline)) {
        __m512bh weights[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            weights[r] = (__m512bh)_mm512_maskz_loadu_epi16(mask, w + r * block.in + i);
        }
#pragma GCC unroll 12
        for (int m = 0; m < M; ++m) {
            const auto values = (__m512bh)_mm512_maskz_loadu_epi16(mask, x + m * block.x_stride + i);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) sums[m * R + r] = _mm512_dpbf16_ps(sums[m * R + r], values, weights[r]);
        }
    };
    int64_t i = 0;
    for (; i + 32 <= block.in; i += 32) step(i, __mmask32(0xffffffff));
    if (i < block.in) step(i, static_cast<__mmask32>((1u << (block.in - i)) - 1));
#pragma GCC unroll 12
    for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) block.y[m * block.y_stride + o + r] = _mm512_reduce_add_ps(sums[m * R + r]);
    }
}

template <int M>
void columns_f32(const Block& block) {
    constexpr int together = M <= 6 ? 4 : M <= 8 ? 3 : 2;
    int64_t o = block.begin;
    for (; o + together <= block.end; o += together) tile_f32<M, together>(block, o);
    for (; o < block.end; ++o) tile_f32<M, 1>(block, o);
}

template <int M>
void columns_bf16(const Block& block) {
    constexpr int together = M <= 6 ? 4 : M <= 8 ? 3 : 2;
    int64_t o = block.begin;
    for (; o + together <= block.end; o += together) tile_bf16<M, together>(block, o);
    for (; o < block.end; ++o) tile_bf16<M, 1>(block, o);
}

using Columns = void (*)(const Block&);
constexpr Columns table_f32[] = {columns_f32<1>, columns_f32<2>,  columns_f32<3>,  columns_f32<4>,
                                 columns_f32<5>, columns_f32<6>,  columns_f32<7>,  columns_f32<8>,
                                 columns_f32<9>, columns_f32<10>, columns_f32<11>, columns_f32<12>};
constexpr Columns table_bf16[] = {columns_bf16<1>, columns_bf16<2>,  columns_bf16<3>,  columns_bf16<4>,
                                  columns_bf16<5>, columns_bf16<6>,  columns_bf16<7>,  columns_bf16<8>,
                                  columns_bf16<9>, columns_bf16<10>, columns_bf16<11>, columns_bf16<12>};
static_assert(std::size(table_f32) == rows_max && std::size(table_bf16) == rows_max);
#endif

void run_block(const Block& block, int m, DType dtype) {
#if defined(__x86_64__)
    const SimdLevel level = simd_level();
    if (level >= SimdLevel::avx512_bf16 && dtype == DType::bf16) return table_bf16[m - 1](block);
    if (level >= SimdLevel::avx512 && dtype == DType::f32) return table_f32[m - 1](block);
    if (level >= SimdLevel::avx2) return block_avx2(block, m, dtype);
#endif
    block_generic(block, m, dtype);
}

}  // namespace

void linear(const Linear& problem) {
    if (problem.dtype == DType::f16 || problem.y_dtype == DType::f16)
        throw std::invalid_argument("linear: expected f32 or bf16, found f16");
    if (problem.n_rows < 0 || problem.in <= 0 || problem.out <= 0)
        throw std::invalid_argument("linear: sizes must be positive");
    if (problem.n_rows == 0) return;
    if (!problem.x || !problem.weight || !problem.y) throw std::invalid_argument("linear: an array is missing");
    const int64_t x_stride = problem.x_stride ? problem.x_stride : problem.in;
    const int64_t y_stride = problem.y_stride ? problem.y_stride : problem.out;
    // Outputs that a thread finishes for one group of rows: its part of y stays in the first-level cache.
    constexpr int64_t panel = 64;
    const int64_t n_panels = (problem.out + panel - 1) / panel;
    // Groups of equal size: 13 rows as 7 and 6, not as 12 and a lonely one that reads the panel for itself.
    const int64_t n_groups = (problem.n_rows + rows_max - 1) / rows_max;
    const int64_t group = (problem.n_rows + n_groups - 1) / n_groups;

    // A weight panel is read from memory for the first group of rows and from the cache for the others.
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < n_panels; ++p) {
        const int64_t begin = p * panel;
        const int64_t end = std::min(begin + panel, problem.out);
        float result[rows_max * panel];
        for (int64_t row = 0; row < problem.n_rows; row += group) {
            const int m = static_cast<int>(std::min(group, problem.n_rows - row));
            const Block block{
                static_cast<const char*>(problem.x) + static_cast<size_t>(row * x_stride) * size_of(problem.dtype),
                x_stride,
                static_cast<const char*>(problem.weight) +
                    static_cast<size_t>(begin * problem.in) * size_of(problem.dtype),
                problem.in,
                0,
                end - begin,
                result,
                panel};
            run_block(block, m, problem.dtype);
            for (int i = 0; i < m; ++i) {
                for (int64_t o = begin; o < end; ++o) {
                    const float value = result[i * panel + o - begin] + (problem.bias ? problem.bias[o] : 0.0f);
                    if (problem.y_dtype == DType::f32) {
                        static_cast<float*>(problem.y)[(row + i) * y_stride + o] = value;
                    } else {
                        static_cast<bf16*>(problem.y)[(row + i) * y_stride + o] = bf16_from_float(value);
                    }
                }
            }
        }
    }
}

}  // namespace kvscope::kernels
