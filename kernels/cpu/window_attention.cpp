#include "kernels/cpu/window_attention.h"

#include <algorithm>
#include <atomic>

#include "kernels/cpu/levels/level_kernels.h"
#include "kernels/cpu/workspace.h"
#include "kernels/threads/team.h"
#include "kernels/threads/turn_order.h"

namespace kvscope::kernels::cpu {

void window_attention(const WindowAttention& problem) {
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

}  // namespace kvscope::kernels::cpu
