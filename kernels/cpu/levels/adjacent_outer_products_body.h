#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/level_kernels.h"

namespace kvscope::kernels {

/// S is the sum of e_c (e_{c-1} + e_{c+1})^T over odd c. Each pair has one odd vector; a pair may be transposed.
template <class Simd>
struct AdjacentOuterProductsBody {
    using vec = typename Simd::vec;
    static constexpr int lanes = Simd::lanes;
    static constexpr int64_t centres_at_once = 32;
    static constexpr int64_t rows_ahead = 16;                 ///< prefetch distance in rows
    static constexpr int tile_rows = 4;                       ///< rows of a register tile of sums
    static constexpr int tile_vectors = lanes == 16 ? 4 : 2;  ///< vectors of a tile's row

    [[nodiscard]] static size_t scratch_bytes(int64_t d) {
        const int64_t width = padded(d);
        return static_cast<size_t>((2 * centres_at_once + 1 + centres_at_once + width) * width) * sizeof(float);
    }

    static void head(const AdjacentOuterProducts& problem, int64_t head, void* scratch) {
        if (problem.dtype == DType::bf16)
            add_head<bf16>(problem, head, static_cast<float*>(scratch));
        else
            add_head<float>(problem, head, static_cast<float*>(scratch));
    }

 private:
    [[nodiscard]] static int64_t padded(int64_t d) { return (d + lanes - 1) / lanes * lanes; }

    template <class T>
    static void add_head(const AdjacentOuterProducts& problem, int64_t head, float* scratch) {
        const int64_t d = problem.d, width = padded(d);
        float* const units = scratch;
        float* const beside = units + (2 * centres_at_once + 1) * width;
        float* const sums = beside + centres_at_once * width;
        for (int64_t i = 0; i < width * width; ++i) sums[i] = 0.0f;
        const auto* const rows = static_cast<const T*>(problem.vectors) + head * problem.head_stride;
        const int64_t behind = problem.before != nullptr ? 1 : 0, n = problem.n + behind;
        const auto vector = [&](int64_t i) {
            return i < behind ? static_cast<const T*>(problem.before) + head * problem.head_stride
                              : rows + (i - behind) * problem.row_stride;
        };
        for (int64_t first = 0; first + 1 < n; first += 2 * centres_at_once) {
            const int64_t count = n - first < 2 * centres_at_once + 1 ? n - first : 2 * centres_at_once + 1;
            for (int64_t i = 0; i < count; ++i) {
                // Rows of a head are pages apart, where the hardware prefetcher does not help.
                const T* ahead = vector(first + i + rows_ahead < n ? first + i + rows_ahead : n - 1);
                for (int64_t c = 0; c < d; c += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(ahead + c);
                unit(vector(first + i), d, width, units + i * width);
            }
            const int64_t n_centres = count / 2;
            for (int64_t k = 0; k < n_centres; ++k) {
                const float* left = units + 2 * k * width;
                const float* right = 2 * k + 2 < count ? left + 2 * width : nullptr;
                for (int64_t c = 0; c < width; c += lanes)
                    Simd::store(beside + k * width + c,
                                right ? Simd::add(Simd::load(left + c), Simd::load(right + c)) : Simd::load(left + c));
            }
            multiply(units + width, beside, n_centres, width, sums);
        }
        double* const out = problem.sums + head * d * d;
        for (int64_t a = 0; a < d; ++a)
            for (int64_t b = 0; b < d; ++b) out[a * d + b] += static_cast<double>(sums[a * width + b]);
    }

    [[nodiscard]] static vec load(const float* p) { return Simd::load(p); }
    [[nodiscard]] static vec load(const bf16* p) { return Simd::load_bf16(p); }

    template <class T>
    static void unit(const T* from, int64_t d, int64_t width, float* to) {
        vec squares = Simd::zero();
        int64_t c = 0;
        for (; c + lanes <= d; c += lanes) {
            const vec x = load(from + c);
            Simd::store(to + c, x);
            squares = Simd::fma(x, x, squares);
        }
        float square = Simd::sum(squares);
        for (; c < d; ++c) {
            to[c] = to_float(from[c]);
            square += to[c] * to[c];
        }
        for (; c < width; ++c) to[c] = 0.0f;
        const vec scale = Simd::set1(square == 0.0f ? 0.0f : 1.0f / std::sqrt(square));
        for (c = 0; c < width; c += lanes) Simd::store(to + c, Simd::mul(Simd::load(to + c), scale));
    }

    /// Adds each center's product with the transposed row beside it to sums (width, width). Centers are two rows apart.
    static void multiply(const float* centres, const float* beside, int64_t n, int64_t width, float* sums) {
        for (int64_t row = 0; row < width; row += tile_rows) {
            int64_t column = 0;
            for (; column + tile_vectors * lanes <= width; column += tile_vectors * lanes)
                tile<tile_vectors>(centres + row, beside + column, n, width, sums + row * width + column);
            for (; column < width; column += lanes)
                tile<1>(centres + row, beside + column, n, width, sums + row * width + column);
        }
    }

    template <int n_vecs>
    static void tile(const float* centres, const float* beside, int64_t n, int64_t width, float* sums) {
        vec tile[tile_rows][n_vecs];
        for (int r = 0; r < tile_rows; ++r)
            for (int v = 0; v < n_vecs; ++v) tile[r][v] = Simd::load(sums + r * width + v * lanes);
        for (int64_t k = 0; k < n; ++k) {
            vec b[n_vecs];
            for (int v = 0; v < n_vecs; ++v) b[v] = Simd::load(beside + k * width + v * lanes);
            for (int r = 0; r < tile_rows; ++r) {
                const vec a = Simd::set1(centres[2 * k * width + r]);
                for (int v = 0; v < n_vecs; ++v) tile[r][v] = Simd::fma(a, b[v], tile[r][v]);
            }
        }
        for (int r = 0; r < tile_rows; ++r)
            for (int v = 0; v < n_vecs; ++v) Simd::store(sums + r * width + v * lanes, tile[r][v]);
    }
};

}  // namespace kvscope::kernels
