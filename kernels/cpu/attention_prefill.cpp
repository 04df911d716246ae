#include "kernels/attention_prefill.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cpu/levels/level_kernels.h"
#include "kernels/cpu/workspace.h"
#include "kernels/threads/team.h"
#include "kernels/threads/turn_order.h"

namespace kvscope::kernels {

namespace {

void check(const PrefillAttention& problem) {
    const auto require = [](bool condition, const std::string& what) {
        if (!condition) throw std::invalid_argument("attention_prefill: " + what);
    };
    require(problem.dtype == DType::f32 || problem.dtype == DType::bf16,
            std::string("type is ") + name_of(problem.dtype) + ", expected f32 or bf16");
    require(problem.n_kv_heads > 0 && problem.n_heads > 0 && problem.n_heads % problem.n_kv_heads == 0,
            std::to_string(problem.n_heads) + " query heads are not a multiple of " +
                std::to_string(problem.n_kv_heads) + " KV heads");
    require(problem.head_dim > 0 && problem.head_dim % 2 == 0,
            "head size is " + std::to_string(problem.head_dim) + ", expected an even number above 0");
    require(problem.scale > 0, "the scale must be above 0");
    require(problem.q_begin >= 0 && problem.n_queries >= 0 && problem.sliding_window >= 0, "a size is negative");
    if (problem.n_queries == 0) return;
    require(!problem.first_keys || problem.sliding_window == 0, "first_keys and sliding_window are both given");
    for (int64_t i = 0; problem.first_keys && i < problem.n_queries; ++i)
        require(problem.first_keys[i] >= (i > 0 ? problem.first_keys[i - 1] : 0) &&
                    problem.first_keys[i] <= problem.q_begin + i,
                "first_keys decrease, or hide a query's own key");
    require(problem.q && problem.k, "q or k is null");
    require(problem.out ? problem.v != nullptr : problem.column_sums != nullptr,
            "v is null, or no output is requested");
    const int64_t width = int64_t{problem.n_heads} * problem.head_dim;
    require(problem.q_token_stride >= width && (!problem.out || problem.out_token_stride >= width),
            "the stride between tokens is smaller than a token");
    require(
        problem.n_kv_heads == 1 || problem.kv_head_stride >= (problem.q_begin + problem.n_queries) * problem.head_dim,
        "the stride between KV heads is smaller than their entries");
    require(!problem.column_sums || problem.column_stride >= problem.q_begin + problem.n_queries,
            "column_stride is smaller than the number of keys");
}

/// A block of queries of one KV head. Tasks with the same column sums take turns, so that sums have a fixed order.
struct Task {
    const PrefillAttention* problem;
    int kv_head;
    int64_t first_query, n_queries;
    size_t line;   ///< queue of the problem and KV head, see Turns
    int64_t turn;  ///< position in that queue
};

AttentionBlock attention_block_of(const Task& task) {
    const PrefillAttention& problem = *task.problem;
    const int group = problem.n_heads / problem.n_kv_heads;
    const auto at = [&](const void* data, int64_t index) {
        return static_cast<const char*>(data) + index * static_cast<int64_t>(size_of(problem.dtype));
    };
    AttentionBlock block;
    block.group = group;
    block.head_dim = problem.head_dim;
    block.scale = problem.scale;
    block.sliding_window = problem.sliding_window;
    block.q_position = problem.q_begin + task.first_query;
    block.n_queries = task.n_queries;
    block.first_keys = problem.first_keys ? problem.first_keys + task.first_query : nullptr;
    block.key_end = block.q_position + task.n_queries;
    const int64_t head = int64_t{task.kv_head} * group * problem.head_dim;
    block.q_dtype = block.kv_dtype = block.out_dtype = problem.dtype;
    block.q = at(problem.q, task.first_query * problem.q_token_stride + head);
    block.q_token_stride = problem.q_token_stride;
    block.q_head_stride = problem.head_dim;
    block.k = at(problem.k, task.kv_head * problem.kv_head_stride);
    if (problem.out != nullptr) block.v = at(problem.v, task.kv_head * problem.kv_head_stride);
    block.cardinality = problem.cardinality;
    if (problem.out != nullptr)  // NOLINTNEXTLINE(*-const-cast): at() adds the const
        block.out = const_cast<char*>(at(problem.out, task.first_query * problem.out_token_stride + head));
    block.out_token_stride = problem.out_token_stride;
    block.out_head_stride = problem.head_dim;
    return block;
}

void add_in_turn(const Task& task, const AttentionBlock& block, Turns& turns) {
    turns.wait_for(task.line, task.turn);
    const int64_t first = first_visible_key(block);
    for (int h = 0; h < block.group; ++h) {
        double* sums =
            task.problem->column_sums + (int64_t{task.kv_head} * block.group + h) * task.problem->column_stride;
        const float* added = block.column_sums + h * block.column_stride;
        for (int64_t j = first; j < block.key_end; ++j)
            sums[j] += static_cast<double>(added[j]) * (block.cardinality ? double{block.cardinality[j]} : 1.0);
    }
    turns.finish(task.line, task.turn);
}

}  // namespace

void attention_prefill(const PrefillAttention& problem) { attention_prefill(std::span(&problem, 1)); }

void attention_prefill(std::span<const PrefillAttention> problems) {
    const AttentionBlockKernel& kernel = level_kernels().attention_block;
    std::vector<Task> tasks;
    size_t scratch_bytes = 0, column_bytes = 0;
    size_t n_lines = 0;
    for (const PrefillAttention& problem : problems) {
        check(problem);
        if (problem.n_queries == 0) continue;
        const int group = problem.n_heads / problem.n_kv_heads;
        const int64_t size = kernel.queries_per_block(group), n_keys = problem.q_begin + problem.n_queries;
        const int64_t n_blocks = (problem.n_queries + size - 1) / size;
        // The longest blocks come first, so that threads finish at about the same time.
        for (int64_t b = n_blocks - 1; b >= 0; --b)
            for (int g = 0; g < problem.n_kv_heads; ++g)
                tasks.push_back({&problem, g, b * size, std::min(size, problem.n_queries - b * size),
                                 n_lines + static_cast<size_t>(g), n_blocks - 1 - b});
        n_lines += static_cast<size_t>(problem.n_kv_heads);
        scratch_bytes = std::max(scratch_bytes,
                                 kernel.scratch_bytes(group, problem.head_dim, n_keys, problem.column_sums != nullptr));
        if (problem.column_sums)
            column_bytes = std::max(column_bytes, static_cast<size_t>(group * n_keys + 16) * sizeof(float));
    }
    if (tasks.empty()) return;

    const int n_threads = static_cast<int>(std::min<size_t>(static_cast<size_t>(threads()), tasks.size()));
    const size_t per_thread = (scratch_bytes + column_bytes + 4095) / 4096 * 4096;
    thread_local Workspace workspace;
    char* scratch = static_cast<char*>(workspace.reserve(per_thread * static_cast<size_t>(n_threads)));
    Turns turns(n_lines);
    std::atomic<size_t> next{0};

    run_on_thread_team(n_threads, [&](int member) {
        char* own = scratch + per_thread * static_cast<size_t>(member);
        for (size_t i = next.fetch_add(1); i < tasks.size(); i = next.fetch_add(1)) {
            const Task& task = tasks[i];
            AttentionBlock block = attention_block_of(task);
            if (task.problem->column_sums) {
                block.column_sums = reinterpret_cast<float*>(own + scratch_bytes);
                block.column_stride = block.key_end;
            }
            kernel.compute(block, own);
            if (task.problem->column_sums) add_in_turn(task, block, turns);
        }
    });
}

}  // namespace kvscope::kernels
