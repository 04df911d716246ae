#include "kernels/window_attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/level_kernels.h"
#include "kernels/cpu/workspace.h"
#include "kernels/larger.h"
#include "kernels/linear.h"
#include "kernels/threads/team.h"
#include "kernels/threads/turn_order.h"

namespace kvscope::kernels {

namespace {

constexpr int64_t columns_of_item = 1024;  ///< columns of the final sum per work item

void check(const char* name, const WindowAttention& problem) {
    const auto require = [name](bool condition, const std::string& what) {
        if (!condition) throw std::invalid_argument(std::string(name) + ": " + what);
    };
    require(problem.keys_dtype == DType::f32 || problem.keys_dtype == DType::bf16,
            std::string("keys are ") + name_of(problem.keys_dtype) + ", expected f32 or bf16");
    require(problem.n_kv_heads > 0 && problem.n_heads > 0 && problem.n_heads % problem.n_kv_heads == 0,
            std::to_string(problem.n_heads) + " query heads are not a multiple of " +
                std::to_string(problem.n_kv_heads) + " KV heads");
    require(problem.head_dim > 0, "the head size must be above 0");
    require(problem.window > 0 && problem.window <= problem.n_tokens, "a window of " + std::to_string(problem.window) +
                                                                          " queries does not fit into " +
                                                                          std::to_string(problem.n_tokens) + " tokens");
    require(problem.scale >= 0 && problem.sliding_window >= 0, "scale and sliding_window must not be negative");
    require(problem.queries && problem.keys && problem.mean, "queries, keys or mean is null");
    require(problem.n_kv_heads == 1 || problem.key_head_stride >= problem.n_tokens * problem.head_dim,
            "the stride between KV heads is smaller than their keys");
}

WindowAttention completed(WindowAttention problem) {
    if (problem.scale == 0) problem.scale = 1.0f / std::sqrt(static_cast<float>(problem.head_dim));
    if (problem.query_head_stride == 0) problem.query_head_stride = int64_t{problem.window} * problem.head_dim;
    return problem;
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

void window_attention(const WindowAttention& given) {
    check("window_attention", given);
    const WindowAttention problem = completed(given);
    const AttentionBlockKernel& kernel = level_kernels().attention_block;
    const int group = problem.n_heads / problem.n_kv_heads;
    const int64_t n_keys = problem.prefix_only ? problem.n_tokens - problem.window : problem.n_tokens;
    std::fill(problem.mean, problem.mean + problem.n_heads * n_keys, 0.0f);
    if (n_keys == 0) return;

    const int64_t queries_per_task = kernel.fewest_queries(group);
    const int64_t tasks_per_head = (problem.window + queries_per_task - 1) / queries_per_task;
    const int64_t n_tasks = tasks_per_head * problem.n_kv_heads;
    const int n_threads = static_cast<int>(std::min<int64_t>(threads(), n_tasks));
    const size_t scratch_bytes = kernel.scratch_bytes(group, problem.head_dim, n_keys, true);
    const size_t column_bytes = static_cast<size_t>(group * n_keys) * sizeof(float);
    const size_t per_thread = (scratch_bytes + column_bytes + 4095) / 4096 * 4096;
    thread_local Workspace workspace;
    char* scratch = static_cast<char*>(workspace.reserve(per_thread * static_cast<size_t>(n_threads)));
    Turns turns(static_cast<size_t>(problem.n_kv_heads));
    std::atomic<int64_t> next{0};

    run_on_thread_team(n_threads, [&](int member) {
        char* own = scratch + per_thread * static_cast<size_t>(member);
        for (int64_t i = next.fetch_add(1); i < n_tasks; i = next.fetch_add(1)) {
            const int64_t kv_head = i % problem.n_kv_heads, turn = i / problem.n_kv_heads;
            const int64_t first = turn * queries_per_task;
            AttentionBlock block;
            block.group = group;
            block.head_dim = problem.head_dim;
            block.scale = problem.scale;
            block.sliding_window = problem.sliding_window;
            block.q_position = problem.n_tokens - problem.window + first;
            block.n_queries = std::min(queries_per_task, problem.window - first);
            block.key_end = std::min(n_keys, block.q_position + block.n_queries);
            block.q_dtype = DType::f32;
            block.q = problem.queries + kv_head * group * problem.query_head_stride + first * problem.head_dim;
            block.q_token_stride = problem.head_dim;
            block.q_head_stride = problem.query_head_stride;
            block.kv_dtype = problem.keys_dtype;
            block.k = static_cast<const char*>(problem.keys) +
                      kv_head * problem.key_head_stride * static_cast<int64_t>(size_of(problem.keys_dtype));
            block.column_sums = reinterpret_cast<float*>(own + scratch_bytes);
            block.column_stride = block.key_end;
            kernel.compute(block, own);

            turns.wait_for(static_cast<size_t>(kv_head), turn);
            const float share = 1.0f / static_cast<float>(problem.window);
            for (int h = 0; h < group; ++h) {
                float* mean = problem.mean + (kv_head * group + h) * n_keys;
                const float* sums = block.column_sums + h * block.column_stride;
                for (int64_t j = first_visible_key(block); j < block.key_end; ++j) mean[j] += sums[j] * share;
            }
            turns.finish(static_cast<size_t>(kv_head), turn);
        }
    });
}

void window_attention_head_max(const WindowAttention& given) {
    check("window_attention_head_max", given);
    if (given.prefix_only) throw std::invalid_argument("window_attention_head_max: prefix_only is not supported");
    const WindowAttention problem = completed(given);
    const int64_t n = problem.n_tokens, d = problem.head_dim, w = problem.window;
    const int group = problem.n_heads / problem.n_kv_heads;
    const auto size = [](int64_t count) { return static_cast<size_t>(count); };
    std::vector<float> most(size(w * n), 0.0f), logits(size(w * group * n)), queries(size(w * group * d)), converted;
    for (int64_t g = 0; g < problem.n_kv_heads; ++g) {
        for (int64_t row = 0; row < w * group; ++row) {  // (w, group), so that the heads of a query are contiguous
            const float* from =
                problem.queries + (g * group + row % group) * problem.query_head_stride + row / group * d;
            for (int64_t c = 0; c < d; ++c) queries[size(row * d + c)] = from[c] * problem.scale;
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
