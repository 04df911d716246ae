#include "kernels/copy_rows.h"

#include <cstring>

namespace kvscope::kernels {

void copy_rows(std::span<const RowCopy> copies) {
    for (const RowCopy& copy : copies) {
        const auto* from = static_cast<const char*>(copy.from);
        auto* to = static_cast<char*>(copy.to);
        for (int64_t i = 0; i < copy.n_rows; ++i, to += copy.to_stride) {
            const auto row = copy.rows ? size_t{copy.rows[i]} : static_cast<size_t>(i);
            const char* source = from + row * copy.from_stride;
            if (source != to) std::memmove(to, source, copy.row_bytes);
        }
    }
}

}  // namespace kvscope::kernels
