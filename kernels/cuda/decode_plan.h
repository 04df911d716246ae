#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/decode_matrix_tile.h"
#include "kernels/cuda/workspace.h"

namespace kvscope::kernels::cuda {

/// Assigns blocks to rows. The host makes a plan, and the kernels read it.
struct DecodePlan {
    /// Largest number of queries per pass of each kind. The last two kinds use the tensor cores.
    static constexpr std::array<int, 6> queries_of_kind = {1, 2, 4, 8, 4, 8};
    static constexpr size_t first_matrix_kind = 4;

    struct Passes {
        std::vector<DecodePass> passes;
        int64_t n_blocks = 0;
    };

    [[nodiscard]] static int matrix_width(int head_dim) {
        return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : decode_most_dim;
    }

    std::vector<DecodePart> parts;
    std::array<Passes, queries_of_kind.size()> of_kinds;
    std::vector<DecodeChain> chains;
    int64_t n_states = 0;
    bool wants_attention = false;

    /// Assigns blocks to `rows`. Sets `refused` to the reason why a row is not supported, or to an empty string.
    template <class T>
    static DecodePlan make(std::span<const DecodeRow> rows, int head_dim, std::string& refused) {
        DecodePlan plan;
        for (size_t i = 0; i < rows.size(); ++i) {
            refused = reason_against(rows, i, head_dim);
            if (!refused.empty()) return {};
            plan.add<T>(rows[i], head_dim);
        }
        return plan;
    }

    struct Placed {
        DecodeArrays arrays;
        std::array<const DecodePass*, queries_of_kind.size()> passes;
    };

    Placed place(Workspace& workspace, int head_dim, float scale) const {
        Placed placed;
        const auto n = static_cast<size_t>(n_states);
        placed.arrays.parts = workspace.place(std::span<const DecodePart>(parts));
        for (size_t i = 0; i < of_kinds.size(); ++i)
            placed.passes[i] = workspace.place(std::span<const DecodePass>(of_kinds[i].passes));
        placed.arrays.chains = workspace.place(std::span<const DecodeChain>(chains));
        placed.arrays.head_dim = head_dim;
        placed.arrays.scale = scale;
        placed.arrays.largest = workspace.place<float>(n);
        placed.arrays.total = workspace.place<float>(n);
        placed.arrays.values = workspace.place<float>(n * static_cast<size_t>(head_dim));
        return placed;
    }

 private:
    [[nodiscard]] static std::string reason_against(std::span<const DecodeRow> rows, size_t i, int head_dim) {
        const DecodeRow& row = rows[i];
        const int key_dim = row.key_dim ? row.key_dim : head_dim;
        if (row.entries) return "entries that are computed when they are read are not supported on the device";
        if (head_dim < 1 || head_dim > decode_most_dim || key_dim < 1 || key_dim > decode_most_dim)
            return "the head size is not within 1 ... " + std::to_string(decode_most_dim);
        if (!row.q || !row.k || !row.v || (!row.continues && !row.out)) return "an array of a row is null";
        if (row.n_queries < 1 || row.n_entries < 1) return "a row has no queries or no entries";
        if (row.n_entries > decode_most_entries) return "a row has too many entries";
        if (row.continues && (i == 0 || rows[i - 1].n_queries != row.n_queries))
            return "a row continues no other row, or a row with another number of queries";
        return {};
    }

    template <class T>
    void add(const DecodeRow& row, int head_dim) {
        if (!row.continues) chains.push_back({n_states, 0, row.n_queries, row.out, row.out_stride, 0, 0});
        DecodeChain& chain = chains.back();
        DecodePart part{row,      divide_rounding_up(row.n_entries, decode_piece_entries),
                        n_states, static_cast<int64_t>(chains.size()) - 1,
                        false,    false};
        if (part.row.key_dim == 0) part.row.key_dim = head_dim;
        if (part.row.attention_stride == 0) part.row.attention_stride = row.n_entries;
        part.aligned_keys = is_aligned<T>(row.k, row.k_stride, part.row.key_dim);
        part.aligned_values = is_aligned<T>(row.v, row.v_stride, head_dim);
        wants_attention = wants_attention || row.attention;
        const bool has_matrices = sizeof(T) == 2 && part.aligned_keys && part.aligned_values &&
                                  part.row.key_dim <= matrix_width(head_dim) && row.k_stride <= decode_most_stride &&
                                  row.v_stride <= decode_most_stride &&
                                  is_aligned<T>(row.q, row.q_stride, part.row.key_dim);
        for (int first = 0; first < row.n_queries; first += decode_most_queries) {
            size_t kind = has_matrices ? first_matrix_kind : 0;
            while (queries_of_kind[kind] < decode_most_queries && queries_of_kind[kind] < row.n_queries - first) ++kind;
            Passes& all = of_kinds[kind];
            all.passes.push_back({static_cast<int64_t>(parts.size()), first, all.n_blocks});
            all.n_blocks += part.n_pieces;
            chain.n_blocks += static_cast<int>(part.n_pieces);
        }
        chain.n_pieces += part.n_pieces;
        n_states += part.n_pieces * row.n_queries;
        parts.push_back(part);
    }
};

}  // namespace kvscope::kernels::cuda
