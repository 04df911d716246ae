#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention_decode.h"
#include "kernels/bf16.h"
#include "kernels/cpu/attention_block.h"
#include "kernels/cpu/linear_task.h"
#include "kernels/log_softmax.h"
#include "kernels/neighbour_products.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/stored_numbers.h"
#include "kernels/swiglu.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

/// Entries of a decode row that are worked on at once; rows are always cut at multiples of it.
inline constexpr int64_t kDecodeSegment = 512;

/// Entries [begin, end) of one row, end - begin <= kDecodeSegment. Leaves, per query, the largest logit in base 2, the
/// sum of n_i 2^(e_i - largest) and the sum of 2^(e_i - largest) v_i; the row's `attention`, where wanted, gets
/// n_i 2^(e_i - largest).
struct DecodeSegment {
    const DecodeRow* row = nullptr;
    int64_t begin = 0, end = 0;
    float* largest = nullptr;  ///< (n_queries)
    float* total = nullptr;    ///< (n_queries)
    float* values = nullptr;   ///< (n_queries, d)
    /// (n_queries, kDecodeTile) the weights 2^(e_i - largest), not times n_i, in place of `values`; nullptr: not
    /// wanted.
    float* weights = nullptr;
    /// What the same thread works on next; its keys are called in meanwhile. nullptr: nothing.
    const DecodeSegment* next = nullptr;
};

/// The inner loops of the CPU kernels as one SIMD level computes them, each for one thread's share.
struct LevelKernels {
    AttentionBlockKernel attention_block;
    void (*decode_segment)(const DecodeSegment& segment, int head_dim, DType dtype, float scale);
    void (*rms_norm)(const RmsNorm& problem, int64_t row_begin, int64_t row_end);
    void (*add_rms_norm)(const AddRmsNorm& problem, int64_t row_begin, int64_t row_end);
    void (*rope)(const Rope& problem, int64_t token_begin, int64_t token_end);
    void (*swiglu)(const SwiGlu& problem, int64_t row_begin, int64_t row_end);
    void (*log_softmax)(const LogSoftmax& problem, int64_t row_begin, int64_t row_end);
    void (*divergence_of_logs)(const DivergenceOfLogs& problem, int64_t row_begin, int64_t row_end);
    void (*add_mapped)(const StoredNumbers& numbers, const float* map, int columns, float* out);
    void (*add_weighted)(const StoredNumbers& numbers, const float* weights, int64_t weight_stride, int n_queries,
                         float* sums);
    size_t (*neighbour_scratch_bytes)(int64_t d);
    void (*neighbour_products)(const NeighbourProducts& problem, int64_t head, void* scratch);
    LinearKernel linear_f32, linear_bf16;
    /// Weights [begin, begin + count) of a row, multiples of 32 where the format has blocks.
    void (*decode_f32)(WeightFormat format, const void* row, int64_t begin, int64_t count, float* out);
    void (*decode_bf16)(WeightFormat format, const void* row, int64_t begin, int64_t count, bf16* out);
};

/// Those of simd_level().
const LevelKernels& level_kernels();

namespace generic {
extern const LevelKernels kKernels;
}
namespace avx2 {
extern const LevelKernels kKernels;
}
namespace avx512 {
extern const LevelKernels kKernels;
}
namespace avx512_bf16 {
/// Those of avx512, apart from what multiplies bf16.
LevelKernels kernels();
}  // namespace avx512_bf16

}  // namespace kvscope::kernels
