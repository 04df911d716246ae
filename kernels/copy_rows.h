#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvscope::kernels {

/// Copies row i from `from + (rows ? rows[i] : i) * from_stride` to `to + i * to_stride`. Source and destination may be
/// one array if `rows` ascends, so that rows never move to higher places.
struct RowCopy {
    const void* from = nullptr;
    size_t from_stride = 0;  ///< bytes between rows
    void* to = nullptr;
    size_t to_stride = 0;  ///< bytes between rows
    int64_t n_rows = 0;
    size_t row_bytes = 0;
    const uint32_t* rows = nullptr;  ///< (n_rows) always in host memory; nullptr means 0, 1, …
};

/// Runs the copies in any order. No copy may read or write memory that another copy writes.
void copy_rows(std::span<const RowCopy> copies);

}  // namespace kvscope::kernels
