#pragma once

#include <cstddef>
#include <vector>

namespace kvscope::gui {

/// How cells on the same pixel are combined.
enum class Reduce {
    maximum,           ///< a single kept token among 100,000 stays visible; for classes, the highest one
    largest_magnitude  ///< for differences; keeps the sign
};

/// A grid and its levels of detail: level k has ceil(columns / 2^k) columns. NaN means unknown.
struct Pyramid {
    struct Level {
        size_t columns = 0;
        std::vector<float> values;  ///< (rows, columns)
    };
    size_t rows = 0;
    Reduce reduce = Reduce::maximum;
    std::vector<Level> levels;
    [[nodiscard]] size_t columns() const { return levels.empty() ? 0 : levels.front().columns; }
    [[nodiscard]] float at(size_t row, size_t column) const { return levels.front().values[row * columns() + column]; }
};

/// Throws std::invalid_argument unless there are rows * columns values.
[[nodiscard]] Pyramid make_pyramid(std::vector<float> values, size_t rows, size_t columns, Reduce reduce);

/// Combines two cells. Returns NaN only if both are NaN.
[[nodiscard]] float combine_cells(Reduce reduce, float a, float b);

}  // namespace kvscope::gui
