#include "kernels/reduce_heads.h"

#include "kernels/larger.h"

namespace kvscope::kernels {

namespace {

template <class Out>
void reduce(HeadReduction kind, const float* in, int64_t in_stride, int64_t n_groups, int64_t group, int64_t n,
            Out* out, int64_t out_stride) {
    const double divisor = kind == HeadReduction::mean ? static_cast<double>(group) : 1.0;
    for (int64_t g = 0; g < n_groups; ++g) {
        const float* rows = in + g * group * in_stride;
        Out* result = out + g * out_stride;
        for (int64_t j = 0; j < n; ++j) {
            double value = rows[j];
            for (int64_t h = 1; h < group; ++h) {
                const double other = rows[h * in_stride + j];
                value = kind == HeadReduction::max ? larger(value, other) : value + other;
            }
            result[j] = static_cast<Out>(value / divisor);
        }
    }
}

}  // namespace

void reduce_heads(HeadReduction kind, const float* in, int64_t in_stride, int64_t n_groups, int64_t group, int64_t n,
                  float* out, int64_t out_stride) {
    reduce(kind, in, in_stride, n_groups, group, n, out, out_stride);
}

void reduce_heads(HeadReduction kind, const float* in, int64_t in_stride, int64_t n_groups, int64_t group, int64_t n,
                  double* out, int64_t out_stride) {
    reduce(kind, in, in_stride, n_groups, group, n, out, out_stride);
}

}  // namespace kvscope::kernels
