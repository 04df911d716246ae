#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

/// Outputs of a task at most.
inline constexpr int64_t kLinearPanel = 48;
/// Rows of a tile at most, and floats of its result.
inline constexpr int64_t kLinearTileRows = 16;
inline constexpr int64_t kLinearTileResult = (kLinearTileRows + 1) * kLinearPanel;

/// Rows of x in tiles as equal as possible: 17 in two as 8 and 9.
struct LinearTiles {
    int64_t n_rows = 0, n_tiles = 0;
    int64_t begin(int64_t tile) const { return n_rows * tile / n_tiles; }
    int64_t rows(int64_t tile) const { return begin(tile + 1) - begin(tile); }
};

/// A thread's share of a product: some tiles of x times some rows of the weight.
struct LinearTask {
    /// All rows of x: tile by tile as LinearKernel::pack leaves them, each at packed_bytes times its first row.
    const void* x = nullptr;
    LinearTiles tiles;
    int64_t first_tile = 0, end_tile = 0;
    const void* weight = nullptr;  ///< (n_outputs, in), its rows row_bytes apart
    size_t row_bytes = 0;
    WeightFormat format = WeightFormat::f32;
    void* decoded = nullptr;  ///< scratch of LinearKernel::decoded_bytes where the format is not that of x
    int64_t in = 0;
    int64_t n_outputs = 0;  ///< 1 ... kLinearPanel
    const float* bias = nullptr;
    void* y = nullptr;  ///< (all rows, n_outputs)
    DType y_dtype = DType::f32;
    int64_t y_stride = 0;
    float* result = nullptr;  ///< scratch (tiles of the task, kLinearTileResult)
    /// Scratch of LinearKernel::panel_bytes for the weights turned round, which pays for many rows; nullptr reads them
    /// where they lie. The result is the same.
    void* panel = nullptr;
};

/// How one SIMD level multiplies one type. Scratch is 64-byte aligned.
struct LinearKernel {
    /// Rows with which turning weights round costs more than it brings: of numbers, and of weights stored in blocks.
    int64_t direct_up_to, stored_up_to;
    int64_t rows_direct, rows_by_panel;  ///< of a tile at most, with weights where they lie, and turned round
    size_t (*packed_bytes)(int64_t in);  ///< of a packed row of x
    size_t (*panel_bytes)(int64_t in);
    size_t (*decoded_bytes)(int64_t in);
    void (*pack)(const void* x, int64_t stride, int64_t n_rows, int64_t in, void* packed);  ///< one tile
    void (*multiply)(const LinearTask& task);
};

}  // namespace kvscope::kernels
