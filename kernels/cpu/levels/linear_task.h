#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::kernels {

inline constexpr int64_t linear_panel_outputs = 48;  ///< largest number of outputs per task
inline constexpr int64_t linear_tile_rows = 16;      ///< largest number of rows per tile
inline constexpr int64_t linear_tile_floats =
    (linear_tile_rows + 1) * linear_panel_outputs;  ///< floats of a tile's result

/// Splits rows of x into tiles of nearly equal size, e.g. 17 rows in two tiles as 8 and 9.
struct LinearTiles {
    int64_t n_rows = 0, n_tiles = 0;
    [[nodiscard]] int64_t begin(int64_t tile) const { return n_rows * tile / n_tiles; }
    [[nodiscard]] int64_t rows(int64_t tile) const { return begin(tile + 1) - begin(tile); }
};

struct LinearTask {
    /// All rows of x, packed tile by tile by LinearKernel::pack. A tile's offset is its first row times packed_bytes.
    const void* x = nullptr;
    LinearTiles tiles;
    int64_t first_tile = 0, end_tile = 0;
    const void* weight = nullptr;  ///< (n_outputs, in) with row_bytes between rows
    size_t row_bytes = 0;
    WeightFormat format = WeightFormat::f32;
    void* decoded = nullptr;  ///< scratch of decoded_bytes() if the format is not the type of x
    int64_t in = 0;
    int64_t n_outputs = 0;  ///< 1 ... linear_panel_outputs
    const float* bias = nullptr;
    void* y = nullptr;  ///< (all rows, n_outputs)
    DType y_dtype = DType::f32;
    int64_t y_stride = 0;
    float* result = nullptr;  ///< scratch (tiles of the task, linear_tile_floats)
    /// Scratch of panel_bytes() for transposed weights, or nullptr to read weights in place, with the same result.
    void* panel = nullptr;
};

/// Product functions of one type at one SIMD level. Scratch is 64-byte aligned.
struct LinearKernel {
    /// Largest numbers of rows for which plain weights (direct) and blocks of weights (stored) are read in place.
    int64_t direct_up_to, stored_up_to;
    int64_t rows_direct, rows_by_panel;  ///< most rows per tile: with weights in place, and with transposed weights
    size_t (*packed_bytes)(int64_t in);  ///< bytes of a packed row of x
    size_t (*panel_bytes)(int64_t in);
    size_t (*decoded_bytes)(int64_t in);
    void (*pack)(const void* x, int64_t stride, int64_t n_rows, int64_t in, void* packed);  ///< packs one tile
    void (*multiply)(const LinearTask& task);
};

}  // namespace kvscope::kernels
