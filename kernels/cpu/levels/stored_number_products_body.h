#pragma once

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/level_kernels.h"

namespace kvscope::kernels {

/// Products with the numbers that a cache stores. Registers hold f32 sums of tile_rows rows and 2 * lanes columns.
template <class Simd>
struct StoredNumberProductsBody {
    using vec = typename Simd::vec;
    static constexpr int lanes = Simd::lanes;
    static constexpr int tile_rows = 4;

    static void add_product_with_map(const StoredNumbers& numbers, const float* map, int columns, float* out) {
        if (numbers.dtype == DType::f32)
            mapped<float>(numbers, map, columns, out);
        else
            mapped<bf16>(numbers, map, columns, out);
    }

    static void add_weighted(const StoredNumbers& numbers, const float* weights, int64_t weight_stride, int n_queries,
                             float* sums) {
        if (numbers.dtype == DType::f32)
            weighted<float>(numbers, weights, weight_stride, n_queries, sums);
        else
            weighted<bf16>(numbers, weights, weight_stride, n_queries, sums);
    }

 private:
    [[nodiscard]] static vec load(const float* p) { return Simd::load(p); }
    [[nodiscard]] static vec load(const bf16* p) { return Simd::load_bf16(p); }

    /// out(r, c) += sum over k of factors[r * row_step + k * step] * row_k[c], where rows are `stride` apart.
    template <class Factor, class T>
    struct Product {
        const Factor* factors;
        int64_t row_step, step;
        const T* rows;
        int64_t stride;
        int64_t n;  ///< number of rows k
        float* out;
        int64_t out_stride;
    };

    template <int R, int V, class Factor, class T>
    [[gnu::always_inline]] static inline void tile(const Product<Factor, T>& p, int64_t r, int64_t c) {
        vec acc[R][V];
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
            for (int v = 0; v < V; ++v) acc[i][v] = Simd::load(p.out + (r + i) * p.out_stride + c + v * lanes);
        const Factor* factors = p.factors + r * p.row_step;
        const T* row = p.rows + c;
        for (int64_t k = 0; k < p.n; ++k, factors += p.step, row += p.stride) {
            vec x[V];
#pragma GCC unroll 2
            for (int v = 0; v < V; ++v) x[v] = load(row + v * lanes);
#pragma GCC unroll 4
            for (int i = 0; i < R; ++i) {
                const vec factor = Simd::set1(to_float(factors[i * p.row_step]));
#pragma GCC unroll 2
                for (int v = 0; v < V; ++v) acc[i][v] = Simd::fma(factor, x[v], acc[i][v]);
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
            for (int v = 0; v < V; ++v) Simd::store(p.out + (r + i) * p.out_stride + c + v * lanes, acc[i][v]);
    }

    template <int R, class Factor, class T>
    static void rows_of(const Product<Factor, T>& p, int64_t r, int64_t columns) {
        int64_t c = 0;
        for (; c + 2 * lanes <= columns; c += 2 * lanes) tile<R, 2>(p, r, c);
        for (; c + lanes <= columns; c += lanes) tile<R, 1>(p, r, c);
        for (; c < columns; ++c)
            for (int64_t i = r; i < r + R; ++i)
                for (int64_t k = 0; k < p.n; ++k)
                    p.out[i * p.out_stride + c] +=
                        to_float(p.factors[i * p.row_step + k * p.step]) * to_float(p.rows[k * p.stride + c]);
    }

    template <class Factor, class T>
    static void multiply(const Product<Factor, T>& p, int64_t n_rows, int64_t columns) {
        int64_t r = 0;
        for (; r + tile_rows <= n_rows; r += tile_rows) rows_of<tile_rows>(p, r, columns);
        switch (n_rows - r) {
            case 3:
                return rows_of<3>(p, r, columns);
            case 2:
                return rows_of<2>(p, r, columns);
            case 1:
                return rows_of<1>(p, r, columns);
            default:
                return;
        }
    }

    template <class T>
    static void mapped(const StoredNumbers& numbers, const float* map, int columns, float* out) {
        multiply<T, float>(
            {static_cast<const T*>(numbers.data), numbers.stride, 1, map, columns, numbers.width, out, columns},
            numbers.n, columns);
    }

    template <class T>
    static void weighted(const StoredNumbers& numbers, const float* weights, int64_t weight_stride, int n_queries,
                         float* sums) {
        multiply<float, T>({weights, weight_stride, 1, static_cast<const T*>(numbers.data), numbers.stride, numbers.n,
                            sums, numbers.width},
                           n_queries, numbers.width);
    }
};

}  // namespace kvscope::kernels
