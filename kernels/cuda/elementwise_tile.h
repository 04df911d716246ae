#pragma once

#include "kernels/copy_rows.h"
#include "kernels/cuda/tile.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/row_errors.h"
#include "kernels/swiglu.h"

namespace kvscope::kernels::cuda {

inline constexpr int element_threads = 128;
inline constexpr int elements_of_block = 1024;  ///< elements of a row per block, for elementwise operations

/// Elements [begin, end) of a row, which one block computes.
struct RowPart {
    int64_t row, begin, end;
    KVSCOPE_DEVICE RowPart(int64_t block_index, int64_t dim) {
        const int64_t tiles = divide_rounding_up(dim, elements_of_block);
        row = block_index / tiles;
        begin = block_index % tiles * elements_of_block;
        end = min_of_two(dim, begin + elements_of_block);
    }
};

/// Largest vector that one warp normalizes. Longer vectors take a whole block.
inline constexpr int largest_norm_of_warp = 512;

KVSCOPE_HOST_DEVICE int vectors_of_norm_block(int64_t dim) {
    return dim <= largest_norm_of_warp ? element_threads / 32 : 1;
}

/// Normalizes a block's vectors: x += delta if given, then out = x / sqrt(mean(x^2) + eps) * weight, in a fixed order.
template <class Block, class X, class Delta, class Out>
struct Norm {
    RmsNorm p;  ///< with strides filled in
    X* x;
    const Delta* delta;  ///< in the layout of x, or nullptr

    KVSCOPE_DEVICE void run(Block& block, int64_t block_index, float* reduced) const {
        const int vectors = vectors_of_norm_block(p.dim);
        const int width = Block::block_threads / vectors;
        const auto vector_of = [&](int t) { return block_index * vectors + t / width; };
        const int64_t n = p.n_rows * p.heads;
        Own<Block, float> sum;
        block.registers([&](int t) { sum[t] = vector_of(t) < n ? square_sum(vector_of(t), t % width, width) : 0.0f; });
        KVSCOPE_UNROLL
        for (int step = 16; step > 0; step /= 2) block.join_lanes(sum, step, Add{});
        if (vectors == 1) {
            block.threads([&](int t) {
                if (t % 32 == 0) reduced[t / 32] = sum[t];
            });
            block.registers([&](int t) {
                sum[t] = 0;
                for (int warp = 0; warp < Block::block_threads / 32; ++warp) sum[t] += reduced[warp];
            });
        }
        block.registers([&](int t) {
            if (vector_of(t) < n) scale(vector_of(t), t % width, width, sum[t]);
        });
    }

    KVSCOPE_DEVICE float square_sum(int64_t vector, int first, int apart) const {
        const int64_t begin = vector / p.heads * p.x_stride + vector % p.heads * p.dim;
        float sum = 0;
        for (int64_t c = first; c < p.dim; c += apart) {
            float value = to_float(x[begin + c]);
            if (delta) {
                value += to_float(delta[begin + c]);
                x[begin + c] = from_float<X>(value);
            }
            sum = multiply_add(value, value, sum);
        }
        return sum;
    }

    KVSCOPE_DEVICE void scale(int64_t vector, int first, int apart, float sum) const {
        const int64_t begin = vector / p.heads * p.x_stride + vector % p.heads * p.dim;
        Out* out = static_cast<Out*>(p.out) + vector / p.heads * p.out_stride + vector % p.heads * p.dim;
        const float factor = 1.0f / square_root(sum / static_cast<float>(p.dim) + p.eps);
        for (int64_t c = first; c < p.dim; c += apart)
            out[c] = from_float<Out>(to_float(x[begin + c]) * factor * p.weight[c]);
    }

    KVSCOPE_DEVICE static float square_root(float x) {
#ifdef __CUDACC__
        return sqrtf(x);
#else
        return std::sqrt(x);
#endif
    }
};

/// Computes silu(gate) * up of a part of a row. Requires non-zero strides.
template <class T, class Block>
KVSCOPE_DEVICE void apply_swiglu(Block& block, int64_t block_index, const SwiGlu& p) {
    const RowPart part(block_index, p.dim);
    const T* gate = static_cast<const T*>(p.gate) + part.row * p.in_stride;
    const T* up = static_cast<const T*>(p.up) + part.row * p.in_stride;
    T* out = static_cast<T*>(p.out) + part.row * p.out_stride;
    block.registers([&](int t) {
        for (int64_t c = part.begin + t; c < part.end; c += Block::block_threads) {
            const float x = to_float(gate[c]);
            // Limits the exponent so that the power stays finite in f32.
            const float exponent = x * log2_e < -126.0f ? -126.0f : x * log2_e;
            out[c] = from_float<T>(x / (1.0f + exp2_of(-exponent)) * to_float(up[c]));
        }
    });
}

/// Rotates the vectors of a token. Requires non-zero strides.
template <class T, class Block>
KVSCOPE_DEVICE void rotate_token_vectors(Block& block, int64_t token, const Rope& p) {
    const int half = p.head_dim / 2;
    const float* cosines = p.cosines + token * half;
    const float* sines = p.sines + token * half;
    T* vectors = static_cast<T*>(p.x) + token * p.token_stride;
    block.registers([&](int t) {
        for (int i = t; i < p.n_heads * half; i += Block::block_threads) {
            const int c = i % half;
            T* low = vectors + i / half * p.head_stride + c;
            const float a = to_float(low[0]), b = to_float(low[half]);
            low[0] = from_float<T>(a * cosines[c] - b * sines[c]);
            low[half] = from_float<T>(b * cosines[c] + a * sines[c]);
        }
    });
}

/// A RowCopy with its indices on the device, in units of 16, 4 or 1 bytes.
struct RowCopyPart {
    RowCopy copy;  ///< with `rows` in device memory
    int unit;
    int64_t rows_of_block;
    int64_t first_block;

    static constexpr size_t bytes_of_block = 16384;
    RowCopyPart(const RowCopy& of, int64_t first) : copy(of), first_block(first) {
        const auto fits = [&](size_t bytes) {
            const size_t all = reinterpret_cast<uintptr_t>(of.from) | reinterpret_cast<uintptr_t>(of.to) |
                               of.from_stride | of.to_stride | of.row_bytes;
            return all % bytes == 0;
        };
        unit = fits(16) ? 16 : fits(4) ? 4 : 1;
        rows_of_block =
            max_of_two<int64_t>(1, static_cast<int64_t>(bytes_of_block / max_of_two<size_t>(1, of.row_bytes)));
    }
    [[nodiscard]] int64_t n_blocks() const { return divide_rounding_up(copy.n_rows, rows_of_block); }
};

template <class Unit, class Block>
KVSCOPE_DEVICE void copy_rows_in_units(Block& block, const RowCopyPart& part, int64_t first, int64_t end) {
    const RowCopy& copy = part.copy;
    const auto units = static_cast<int>(copy.row_bytes / sizeof(Unit));
    const auto n = static_cast<int>(end - first) * units;
    block.registers([&](int t) {
        for (int i = t; i < n; i += Block::block_threads) {
            const int64_t row = first + i / units;
            const size_t at = static_cast<size_t>(i % units) * sizeof(Unit);
            const size_t source = copy.rows ? copy.rows[row] : static_cast<size_t>(row);
            const char* from = static_cast<const char*>(copy.from) + source * copy.from_stride + at;
            char* to = static_cast<char*>(copy.to) + static_cast<size_t>(row) * copy.to_stride + at;
            *reinterpret_cast<Unit*>(to) = *reinterpret_cast<const Unit*>(from);
        }
    });
}

template <class Block>
KVSCOPE_DEVICE void copy_rows_by_thread_block(Block& block, const RowCopyPart& part, int64_t block_index) {
    struct alignas(16) Sixteen {
        uint32_t words[4];
    };
    const int64_t first = (block_index - part.first_block) * part.rows_of_block;
    const int64_t end = min_of_two(part.copy.n_rows, first + part.rows_of_block);
    if (part.unit == 16)
        copy_rows_in_units<Sixteen>(block, part, first, end);
    else if (part.unit == 4)
        copy_rows_in_units<uint32_t>(block, part, first, end);
    else
        copy_rows_in_units<uint8_t>(block, part, first, end);
}

/// Computes the errors of vectors, one warp each. errors (n_rows, n_heads) must be in device memory.
template <class T, class Block>
KVSCOPE_DEVICE void compute_relative_errors(Block& block, int64_t block_index, const RowErrors& p) {
    Own<Block, Numbers<double, 2>> sums;  // sums of squares: of the difference, and of the expected vector
    const auto vector_of = [&](int t) { return block_index * (Block::block_threads / 32) + t / 32; };
    const int64_t n = p.n_rows * p.n_heads;
    block.registers([&](int t) {
        sums[t] = {};
        if (vector_of(t) >= n) return;
        const int64_t row = vector_of(t) / p.n_heads, at = vector_of(t) % p.n_heads * p.head_dim;
        const T* found = static_cast<const T*>(p.found) + row * p.found_stride + at;
        const T* expected = static_cast<const T*>(p.expected) + row * p.expected_stride + at;
        for (int c = t % 32; c < p.head_dim; c += 32) {
            const double e = static_cast<double>(to_float(expected[c]));
            const double difference = static_cast<double>(to_float(found[c])) - e;
            sums[t][0] += difference * difference;
            sums[t][1] += e * e;
        }
    });
    KVSCOPE_UNROLL
    for (int step = 16; step > 0; step /= 2) block.join_lanes(sums, step, Add{});
    block.registers([&](int t) {
        if (t % 32 != 0 || vector_of(t) >= n) return;
        p.errors[vector_of(t)] = sums[t][1] == 0 ? 0.0 : sqrt(sums[t][0] / sums[t][1]);
    });
}

}  // namespace kvscope::kernels::cuda
