#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/adjacent_outer_products.h"
#include "kernels/attention_decode.h"
#include "kernels/bf16.h"
#include "kernels/cpu/levels/attention_block.h"
#include "kernels/cpu/levels/linear_task.h"
#include "kernels/log_softmax.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/stored_number_products.h"
#include "kernels/swiglu.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

/// Number of entries of a decode row that are processed together. Segments start at multiples of this number.
inline constexpr int64_t segment_entries = 512;

/// Entries [begin, end) of one row, at most segment_entries. The results per query are the largest logit (base 2), and
/// the sums of n_i 2^(e_i - largest) and of 2^(e_i - largest) v_i. The row's `attention` is right up to a factor.
struct DecodeSegment {
    const DecodeRow* row = nullptr;
    int64_t begin = 0, end = 0;
    float* largest = nullptr;  ///< (n_queries)
    float* total = nullptr;    ///< (n_queries)
    float* values = nullptr;   ///< (n_queries, d)
    /// (n_queries, decode_tile) or nullptr. If given, receives the weights 2^(e_i - largest), and `values` is not used.
    float* weights = nullptr;
    const DecodeSegment* next = nullptr;  ///< the thread's next segment, whose keys are prefetched, or nullptr
};

/// Inner loops of the CPU kernels at one SIMD level. Each call runs on one thread.
struct LevelKernels {
    AttentionBlockKernel attention_block;
    void (*decode_segment)(const DecodeSegment& segment, int head_dim, DType dtype, float scale);
    void (*rms_norm)(const RmsNorm& problem, int64_t row_begin, int64_t row_end);
    void (*add_rms_norm)(const AddRmsNorm& problem, int64_t row_begin, int64_t row_end);
    void (*rope)(const Rope& problem, int64_t token_begin, int64_t token_end);
    void (*swiglu)(const SwiGlu& problem, int64_t row_begin, int64_t row_end);
    void (*log_softmax)(const LogSoftmax& problem, int64_t row_begin, int64_t row_end);
    void (*divergence_of_logs)(const DivergenceOfLogs& problem, int64_t row_begin, int64_t row_end);
    void (*add_product_with_map)(const StoredNumbers& numbers, const float* map, int columns, float* out);
    void (*add_weighted)(const StoredNumbers& numbers, const float* weights, int64_t weight_stride, int n_queries,
                         float* sums);
    size_t (*neighbour_scratch_bytes)(int64_t d);
    void (*add_adjacent_outer_products)(const AdjacentOuterProducts& problem, int64_t head, void* scratch);
    LinearKernel linear_f32, linear_bf16;
    /// Decodes weights [begin, begin + count) of a row, in multiples of 32 for formats with blocks.
    void (*decode_f32)(WeightFormat format, const void* row, int64_t begin, int64_t count, float* out);
    void (*decode_bf16)(WeightFormat format, const void* row, int64_t begin, int64_t count, bf16* out);
};

[[nodiscard]] const LevelKernels& level_kernels();

namespace generic {
extern const LevelKernels all_kernels;
}
namespace avx2 {
extern const LevelKernels all_kernels;
}
namespace avx512 {
extern const LevelKernels all_kernels;
}
namespace avx512_bf16 {
[[nodiscard]] LevelKernels make_kernels();
}  // namespace avx512_bf16

}  // namespace kvscope::kernels
