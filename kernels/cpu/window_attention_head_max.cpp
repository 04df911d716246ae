#include "kernels/window_attention_head_max.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/larger.h"
#include "kernels/linear.h"
#include "kernels/threads/team.h"

namespace kvscope::kernels {

namespace {

constexpr int64_t columns_of_item = 1024;  ///< columns of the final sum per work item

void check(const WindowAttention& problem) {
    if (problem.prefix_only || problem.n_kv_heads < 1 || problem.n_heads < 1 ||
        problem.n_heads % problem.n_kv_heads != 0 || problem.head_dim < 1 || problem.window < 1 ||
        problem.window > problem.n_tokens || problem.sliding_window < 0 || problem.scale < 0) {
        throw std::invalid_argument("window_attention_head_max: the sizes contradict each other");
    }
    if (problem.keys_dtype != DType::f32 && problem.keys_dtype != DType::bf16) {
        throw std::invalid_argument("window_attention_head_max: expected keys in f32 or bf16");
    }
    if (!problem.queries || !problem.keys || !problem.mean)
        throw std::invalid_argument("window_attention_head_max: an array is null");
}

float largest_of(const float* values, int64_t n) {
    constexpr int64_t n_lanes = 16;  // independent comparisons, because a single chain would wait for each result
    float lanes[n_lanes];
    std::fill(lanes, lanes + n_lanes, values[0]);
    int64_t j = 0;
    for (; j + n_lanes <= n; j += n_lanes) {
        for (int64_t lane = 0; lane < n_lanes; ++lane)
            lanes[lane] = lanes[lane] < values[j + lane] ? values[j + lane] : lanes[lane];
    }
    for (; j < n; ++j) lanes[0] = lanes[0] < values[j] ? values[j] : lanes[0];
    return *std::max_element(lanes, lanes + n_lanes);
}

/// Sums each of `rows` rows of n numbers in order. Four rows alternate, because an addition waits for the previous sum.
void sum_rows(const float* values, int64_t stride, int64_t n, int64_t rows, double* sums) {
    constexpr int64_t rows_together = 4;
    int64_t row = 0;
    for (; row + rows_together <= rows; row += rows_together) {
        const float* first = values + row * stride;
        double total[rows_together] = {};
        for (int64_t j = 0; j < n; ++j) {
            for (int64_t r = 0; r < rows_together; ++r) total[r] += first[r * stride + j];
        }
        std::copy_n(total, rows_together, sums + row);
    }
    for (; row < rows; ++row) {
        double total = 0.0;
        for (int64_t j = 0; j < n; ++j) total += values[row * stride + j];
        sums[row] = total;
    }
}

/// Replaces the logits of each head by their softmax and adds the mean over the group to `sums`.
void add_weights(float* logits, int64_t stride, int64_t n, int group, float* sums) {
    for (int h = 0; h < group; ++h) {
        float* of_head = logits + h * stride;
        const float largest = largest_of(of_head, n);
        for (int64_t j = 0; j < n; ++j) of_head[j] = std::exp(of_head[j] - largest);
    }
    std::vector<double> totals(static_cast<size_t>(group));
    sum_rows(logits, stride, n, group, totals.data());
    for (int h = 0; h < group; ++h) {
        const float* of_head = logits + h * stride;
        const auto part = static_cast<float>(1.0 / (totals[static_cast<size_t>(h)] * group));
        for (int64_t j = 0; j < n; ++j) sums[j] += of_head[j] * part;
    }
}

}  // namespace

void window_attention_head_max(const WindowAttention& problem) {
    check(problem);
    const int64_t n = problem.n_tokens, d = problem.head_dim, w = problem.window;
    const int group = problem.n_heads / problem.n_kv_heads;
    const int64_t query_head_stride = problem.query_head_stride != 0 ? problem.query_head_stride : w * d;
    const float scale = problem.scale != 0 ? problem.scale : 1.0f / std::sqrt(static_cast<float>(d));
    const auto size = [](int64_t count) { return static_cast<size_t>(count); };
    std::vector<float> most(size(w * n), 0.0f), logits(size(w * group * n)), queries(size(w * group * d)), converted;
    for (int64_t g = 0; g < problem.n_kv_heads; ++g) {
        for (int64_t row = 0; row < w * group; ++row) {  // (w, group), so that the heads of a query are contiguous
            const float* from = problem.queries + (g * group + row % group) * query_head_stride + row / group * d;
            for (int64_t c = 0; c < d; ++c) queries[size(row * d + c)] = from[c] * scale;
        }
        const float* keys = static_cast<const float*>(problem.keys) + g * problem.key_head_stride;
        if (problem.keys_dtype == DType::bf16) {
            const bf16* from = static_cast<const bf16*>(problem.keys) + g * problem.key_head_stride;
            converted.resize(size(n * d));
            float* to = converted.data();
            over_parts(threads(), n * d, 1 << 14, [&](int64_t begin, int64_t end, int) {
                for (int64_t i = begin; i < end; ++i) to[i] = to_float(from[i]);
            });
            keys = converted.data();
        }
        linear({.dtype = DType::f32,
                .n_rows = w * group,
                .in = d,
                .out = n,
                .x = queries.data(),
                .weight = keys,
                .y = logits.data()});
        const auto add_query = [&](int64_t i) {
            const int64_t end = n - w + i + 1;
            const int64_t begin = problem.sliding_window > 0 ? std::max<int64_t>(end - problem.sliding_window, 0) : 0;
            std::vector<float> sums(size(end - begin), 0.0f);
            add_weights(logits.data() + i * group * n + begin, n, end - begin, group, sums.data());
            float* of_query = most.data() + i * n + begin;
            for (size_t j = 0; j < sums.size(); ++j) of_query[j] = larger(of_query[j], sums[j]);
        };
        over_parts(threads(), w, 1, [&](int64_t begin, int64_t end, int) {
            for (int64_t i = begin; i < end; ++i) add_query(i);
        });
    }
    over_parts(threads(), n, columns_of_item, [&](int64_t begin, int64_t end, int) {
        std::fill(problem.mean + begin, problem.mean + end, 0.0f);
        for (int64_t i = 0; i < w; ++i) {
            const float* of_query = most.data() + i * n;
            for (int64_t j = begin; j < end; ++j) problem.mean[j] += of_query[j] / static_cast<float>(w);
        }
    });
}

}  // namespace kvscope::kernels
