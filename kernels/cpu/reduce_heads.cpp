#include "kernels/reduce_heads.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/targets.h"
#include "kernels/cpu_features.h"
#include "kernels/larger.h"
#include "kernels/threads/parallel.h"

namespace kvscope::kernels {

namespace {

constexpr int64_t block_columns = 512;        ///< columns whose sums fit into the first-level cache
constexpr int64_t columns_of_item = 1 << 13;  ///< columns per work item

/// Reduces at most block_columns columns of one group of rows, row by row, so that the loops over columns vectorize.
template <class Out>
KVSCOPE_INLINE void block_body(HeadReduction kind, const float* rows, int64_t in_stride, int64_t group, int64_t n,
                               float factor, Out* out) {
    std::array<double, block_columns> values;  // NOLINT(*-member-init): filled below
    for (int64_t j = 0; j < n; ++j) values[j] = rows[j] * factor;
    for (int64_t h = 1; h < group; ++h) {
        const float* row = rows + h * in_stride;
        if (kind == HeadReduction::max) {
            for (int64_t j = 0; j < n; ++j) values[j] = larger(values[j], double{row[j] * factor});
        } else {
            for (int64_t j = 0; j < n; ++j) values[j] += row[j] * factor;
        }
    }
    const double divisor = kind == HeadReduction::mean ? static_cast<double>(group) : 1.0;
    for (int64_t j = 0; j < n; ++j) out[j] = static_cast<Out>(values[j] / divisor);
}

#define KVSCOPE_BLOCK(name, target)                                                                           \
    target void block_##name(HeadReduction kind, const float* rows, int64_t stride, int64_t group, int64_t n, \
                             float factor, float* out) {                                                      \
        block_body(kind, rows, stride, group, n, factor, out);                                                \
    }                                                                                                         \
    target void block_##name(HeadReduction kind, const float* rows, int64_t stride, int64_t group, int64_t n, \
                             float factor, double* out) {                                                     \
        block_body(kind, rows, stride, group, n, factor, out);                                                \
    }

KVSCOPE_BLOCK(generic, )
#ifdef KVSCOPE_AVX2
KVSCOPE_BLOCK(avx2, KVSCOPE_AVX2)
KVSCOPE_BLOCK(avx512, KVSCOPE_AVX512)
#endif
#undef KVSCOPE_BLOCK

template <class Out>
void block(HeadReduction kind, const float* rows, int64_t stride, int64_t group, int64_t n, float factor, Out* out) {
#ifdef KVSCOPE_AVX2
    if (simd_level() >= SimdLevel::avx512) return block_avx512(kind, rows, stride, group, n, factor, out);
    if (simd_level() >= SimdLevel::avx2) return block_avx2(kind, rows, stride, group, n, factor, out);
#endif
    block_generic(kind, rows, stride, group, n, factor, out);
}

template <class Out>
void reduce(HeadReduction kind, const float* in, int64_t in_stride, int64_t n_groups, int64_t group, int64_t n,
            Out* out, int64_t out_stride, float factor) {
    const int64_t n_turns = (n + columns_of_item - 1) / columns_of_item;
    parallel_for(n_groups * n_turns, n_groups * group * n, [&](int64_t i) {
        const int64_t g = i / n_turns, begin = i % n_turns * columns_of_item,
                      end = std::min(begin + columns_of_item, n);
        for (int64_t j = begin; j < end; j += block_columns)
            block(kind, in + g * group * in_stride + j, in_stride, group, std::min(block_columns, end - j), factor,
                  out + g * out_stride + j);
    });
}

}  // namespace

void reduce_heads(HeadReduction kind, const float* in, int64_t in_stride, int64_t n_groups, int64_t group, int64_t n,
                  float* out, int64_t out_stride, float factor) {
    reduce(kind, in, in_stride, n_groups, group, n, out, out_stride, factor);
}

void reduce_heads(HeadReduction kind, const float* in, int64_t in_stride, int64_t n_groups, int64_t group, int64_t n,
                  double* out, int64_t out_stride, float factor) {
    reduce(kind, in, in_stride, n_groups, group, n, out, out_stride, factor);
}

}  // namespace kvscope::kernels
