#include "kernels/copy_rows.h"

#include <cstring>

#include "kernels/threads/parallel.h"

namespace kvscope::kernels {

namespace {

void copy(const RowCopy& rows) {
    const auto* from = static_cast<const char*>(rows.from);
    auto* to = static_cast<char*>(rows.to);
    for (int64_t i = 0; i < rows.n_rows; ++i, to += rows.to_stride) {
        const auto row = rows.rows ? size_t{rows.rows[i]} : static_cast<size_t>(i);
        const char* source = from + row * rows.from_stride;
        if (source != to) std::memmove(to, source, rows.row_bytes);
    }
}

}  // namespace

void copy_rows(std::span<const RowCopy> copies) {
    size_t bytes = 0;
    for (const RowCopy& of_one : copies) bytes += static_cast<size_t>(of_one.n_rows) * of_one.row_bytes;
    // One thread makes a whole copy in order, because the copy's source and destination may overlap.
    parallel_for(static_cast<int64_t>(copies.size()), static_cast<int64_t>(bytes / 32),
                 [&](int64_t i) { copy(copies[static_cast<size_t>(i)]); });
}

}  // namespace kvscope::kernels
