#pragma once

#include "kernels/cuda/expand_weights.h"
#include "kernels/linear.h"

/// Products in f32: a warp has two outputs. Other rows do not change the order in which a row's sums are added.
namespace kvscope::kernels::cuda {

inline constexpr int linear_threads = 128;
inline constexpr int linear_outputs = 2;    ///< outputs per warp
inline constexpr int linear_most_rows = 8;  ///< largest number of rows whose sums and elements fit into registers

/// A Linear with its strides filled in, for the kernels.
struct LinearProblem {
    int64_t n_rows, in, out;
    const void* x;
    int64_t x_stride;
    const uint8_t* weight;
    size_t row_bytes;
    const float* bias;
    void* y;
    DType y_dtype;
    int64_t y_stride;
};

KVSCOPE_DEVICE void write_linear_output(const LinearProblem& p, int64_t row, int64_t output, float sum) {
    if (p.bias) sum += p.bias[output];
    if (p.y_dtype == DType::f32)
        static_cast<float*>(p.y)[row * p.y_stride + output] = sum;
    else
        static_cast<bf16*>(p.y)[row * p.y_stride + output] = bf16_from_float(sum);
}

template <class Block, WeightFormat format, int M>
struct LinearTile {
    static constexpr int warp_outputs = linear_outputs;
    static constexpr int step_elements = 32 * weights_at_once;
    static constexpr int groups_in_flight = M == 1 ? 2 : 1;  ///< groups of eight weights in flight
    using Sums = Numbers<float, M * warp_outputs>;

    const LinearProblem& p;
    int64_t first_row, first_output;  ///< first row, and first output of the block

    KVSCOPE_DEVICE int64_t output_of(int t) const { return first_output + t / 32 * warp_outputs; }
    static constexpr int outputs_of_block = Block::block_threads / 32 * warp_outputs;

    KVSCOPE_DEVICE void multiply(Block& block) const {
        Own<Block, Sums> sums;
        block.registers([&](int t) {
            sums[t] = {};
            if (output_of(t) >= p.out) return;
            KVSCOPE_UNROLL_BY(groups_in_flight)
            for (int64_t at = t % 32 * weights_at_once; at < p.in; at += step_elements) add(output_of(t), at, sums[t]);
        });
        KVSCOPE_UNROLL
        for (int step = 16; step > 0; step /= 2) block.join_lanes(sums, step, Add{});
        block.registers([&](int t) {
            if (t % 32 == 0) write(output_of(t), sums[t]);
        });
    }

    KVSCOPE_DEVICE void add(int64_t output, int64_t at, Sums& sums) const {
        Numbers<Weights, warp_outputs> weights;
        KVSCOPE_UNROLL
        for (int r = 0; r < warp_outputs; ++r)  // a repeated last output is not written
            weights[r] =
                weights_at<format>(p.weight + static_cast<size_t>(min_of_two(output + r, p.out - 1)) * p.row_bytes, at);
        KVSCOPE_UNROLL
        for (int m = 0; m < M; ++m) {
            const float* x = static_cast<const float*>(p.x) + min_of_two(first_row + m, p.n_rows - 1) * p.x_stride + at;
            KVSCOPE_UNROLL
            for (int c = 0; c < weights_at_once; c += elements_per_load<float>) {
                const Loaded<float> values = load_aligned(x + c);
                KVSCOPE_UNROLL
                for (int i = 0; i < elements_per_load<float>; ++i) {
                    KVSCOPE_UNROLL
                    for (int r = 0; r < warp_outputs; ++r)
                        sums[m * warp_outputs + r] =
                            multiply_add(values[i], weights[r][c + i], sums[m * warp_outputs + r]);
                }
            }
        }
    }

    KVSCOPE_DEVICE void write(int64_t output, const Sums& sums) const {
        KVSCOPE_UNROLL
        for (int m = 0; m < M; ++m) {
            KVSCOPE_UNROLL
            for (int r = 0; r < warp_outputs; ++r) {
                if (first_row + m >= p.n_rows || output + r >= p.out) continue;
                write_linear_output(p, first_row + m, output + r, sums[m * warp_outputs + r]);
            }
        }
    }
};

struct ExpandProblem {
    int64_t n_rows, in;
    const uint8_t* table;
    size_t row_bytes;
    const int32_t* rows;  ///< (n_rows) indices into the table; nullptr means the first n_rows
    void* out;            ///< (n_rows, in)
};

template <WeightFormat format, class T, class Block>
KVSCOPE_DEVICE void expand(Block& block, int64_t block_index, const ExpandProblem& p) {
    const int64_t of_row = p.in / weights_at_once;
    block.registers([&](int t) {
        const int64_t i = block_index * Block::block_threads + t;
        if (i >= p.n_rows * of_row) return;
        const int64_t row = i / of_row, at = i % of_row * weights_at_once;
        const int64_t source = p.rows ? p.rows[row] : row;
        const Weights x = weights_at<format>(p.table + static_cast<size_t>(source) * p.row_bytes, at);
        T* out = static_cast<T*>(p.out) + row * p.in + at;
        KVSCOPE_UNROLL
        for (int c = 0; c < weights_at_once; ++c) out[c] = from_float<T>(x[c]);
    });
}

}  // namespace kvscope::kernels::cuda
