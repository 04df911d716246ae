#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/prefill_column_sum_tile.h"
#include "kernels/cuda/prefill_tile.h"
#include "kernels/cuda/workspace.h"

namespace kvscope::kernels::cuda {

/// Assigns blocks to problems of one type and padded head size. The host makes a plan, and the kernels read it.
struct PrefillPlan {
    std::vector<PrefillItem> items;
    std::vector<ColumnItem> columns;
    std::vector<int64_t> first_keys;
    int64_t n_blocks = 0, n_column_blocks = 0;
    size_t n_sums = 0;

    [[nodiscard]] static int padded(int head_dim) {
        return head_dim <= 64 ? 64 : head_dim <= 96 ? 96 : head_dim <= 128 ? 128 : 256;
    }

    [[nodiscard]] static std::string reason_against(const PrefillAttention& p) {
        if (p.dtype != DType::f32 && p.dtype != DType::bf16) return "the type is neither f32 nor bf16";
        if (p.n_kv_heads < 1 || p.n_heads < 1 || p.n_heads % p.n_kv_heads != 0)
            return "the number of query heads is not a multiple of the number of KV heads";
        if (p.head_dim < 8 || p.head_dim % 8 != 0 || p.head_dim > prefill_most_dim)
            return "the head size is " + std::to_string(p.head_dim) + ", expected a multiple of 8 up to 256";
        if (!(p.scale > 0)) return "the scale is not above 0";
        if (p.n_queries < 0 || p.q_begin < 0 || p.q_begin + p.n_queries > 0x7fff0000) return "too many keys";
        if (p.n_queries == 0) return {};
        if (!p.q || !p.k || !p.v || (!p.out && !p.column_sums)) return "an array is null";
        const bool aligned = p.dtype == DType::f32 ? is_aligned<float>(p.q, p.q_token_stride, p.head_dim) &&
                                                         is_aligned<float>(p.k, p.kv_head_stride, p.head_dim)
                                                   : is_aligned<bf16>(p.q, p.q_token_stride, p.head_dim) &&
                                                         is_aligned<bf16>(p.k, p.kv_head_stride, p.head_dim);
        const auto divides = [](uintptr_t bytes, const void* data) {
            return reinterpret_cast<uintptr_t>(data) % bytes == 0;
        };
        if (!aligned || !divides(16, p.v) || !divides(4, p.out) || p.out_token_stride % 2 != 0)
            return "an array or a stride is not aligned to 16 bytes";
        return {};
    }

    template <class T, int D>
    void add(const PrefillAttention& problem) {
        using Shape = PrefillShape<T, D>;
        if (problem.n_queries == 0) return;
        PrefillItem item{problem, 0, n_blocks, nullptr};
        item.n_tiles = divide_rounding_up(problem.n_queries * (problem.n_heads / problem.n_kv_heads), Shape::tile_rows);
        n_blocks += item.n_tiles * problem.n_kv_heads;
        if (problem.first_keys)
            first_keys.insert(first_keys.end(), problem.first_keys, problem.first_keys + problem.n_queries);
        if (problem.column_sums) {
            const int64_t n_tiles = divide_rounding_up(problem.q_begin + problem.n_queries, Shape::tile_rows);
            columns.push_back({static_cast<int64_t>(items.size()), n_tiles, n_column_blocks});
            n_column_blocks += n_tiles * problem.n_heads;
            n_sums += static_cast<size_t>(problem.n_heads * problem.n_queries);
        }
        items.push_back(item);
    }

    struct Placed {
        const PrefillItem* items;
        const ColumnItem* columns;
    };

    Placed place(Workspace& workspace) {
        Softmax* sums = workspace.place<Softmax>(n_sums);
        const int64_t* placed_keys = workspace.place(std::span<const int64_t>(first_keys));
        for (PrefillItem& item : items) {
            if (item.problem.first_keys) {
                item.problem.first_keys = placed_keys;
                placed_keys += item.problem.n_queries;
            }
            if (item.problem.column_sums) {
                item.sums = sums;
                sums += item.problem.n_heads * item.problem.n_queries;
            }
        }
        return {workspace.place(std::span<const PrefillItem>(items)),
                workspace.place(std::span<const ColumnItem>(columns))};
    }
};

}  // namespace kvscope::kernels::cuda
