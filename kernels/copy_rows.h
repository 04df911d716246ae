#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvscope::kernels {

/// Rows that are copied: row i from `from + (rows ? rows[i] : i) * from_stride` to `to + i * to_stride`. Where both are
/// in one array, rows move up: each goes to where it was or before, and `rows` ascends.
struct RowCopy {
    const void* from = nullptr;
    size_t from_stride = 0;  ///< bytes
    void* to = nullptr;
    size_t to_stride = 0;  ///< bytes
    int64_t n_rows = 0;
    size_t row_bytes = 0;
    const uint32_t* rows = nullptr;  ///< (n_rows) in the processor's memory whatever the device; nullptr: 0, 1, …
};

/// In any order. No copy reads or writes what another one in the call writes.
void copy_rows(std::span<const RowCopy> copies);

}  // namespace kvscope::kernels
