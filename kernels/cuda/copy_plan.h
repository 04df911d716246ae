#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/cuda/elementwise_tile.h"
#include "kernels/cuda/workspace.h"

namespace kvscope::kernels::cuda {

/// Copies of rows. Rows that move within one array go through the workspace.
struct CopyPlan {
    struct Stage {
        std::vector<RowCopyPart> parts;
        int64_t n_blocks = 0;

        void add(const RowCopy& copy) {
            if (copy.n_rows == 0 || copy.row_bytes == 0) return;
            parts.emplace_back(copy, n_blocks);
            n_blocks += parts.back().n_blocks();
        }
    };
    Stage out, back;
    const RowCopyPart *placed_out = nullptr, *placed_back = nullptr;

    CopyPlan(std::span<const RowCopy> copies, Workspace& workspace) {
        std::vector<uint32_t> indices;
        size_t n_detour = 0;
        for (const RowCopy& copy : copies) {
            if (copy.rows) indices.insert(indices.end(), copy.rows, copy.rows + copy.n_rows);
            if (overlaps(copy)) n_detour += padded_bytes(copy);
        }
        char* detour = workspace.place<char>(n_detour);
        const uint32_t* rows = workspace.place(std::span<const uint32_t>(indices));
        for (RowCopy copy : copies) {
            const bool overlapping = overlaps(copy);
            if (copy.rows) {
                copy.rows = rows;
                rows += copy.n_rows;
            }
            if (!overlapping) {
                out.add(copy);
                continue;
            }
            RowCopy first = copy, second = copy;
            first.to = detour;
            first.to_stride = second.from_stride = copy.row_bytes;
            second.from = detour;
            second.rows = nullptr;
            out.add(first);
            back.add(second);
            detour += padded_bytes(copy);
        }
        placed_out = workspace.place(std::span<const RowCopyPart>(out.parts));
        placed_back = workspace.place(std::span<const RowCopyPart>(back.parts));
    }

 private:
    [[nodiscard]] static size_t padded_bytes(const RowCopy& copy) {
        return (static_cast<size_t>(copy.n_rows) * copy.row_bytes + 15) / 16 * 16;
    }

    [[nodiscard]] static bool overlaps(const RowCopy& copy) {
        if (copy.n_rows == 0) return false;
        const auto n = static_cast<size_t>(copy.n_rows);
        const size_t last = copy.rows ? *std::max_element(copy.rows, copy.rows + copy.n_rows) : n - 1;
        const auto from = reinterpret_cast<uintptr_t>(copy.from), to = reinterpret_cast<uintptr_t>(copy.to);
        return to < from + last * copy.from_stride + copy.row_bytes &&
               from < to + (n - 1) * copy.to_stride + copy.row_bytes;
    }
};

}  // namespace kvscope::kernels::cuda
