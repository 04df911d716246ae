#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kvscope::gui {

/// What several cells become that share a pixel.
enum class Reduce {
    maximum,           ///< a single kept token among 100,000 stays visible; also the highest class of classes
    largest_magnitude  ///< of differences, with its sign
};

/// A grid (rows, columns) and its halvings along the columns: level k has ceil(columns / 2^k). NaN is nothing known,
/// and wins only where there is nothing else.
struct Pyramid {
    struct Level {
        size_t columns = 0;
        std::vector<float> values;  ///< (rows, columns)
    };
    size_t rows = 0;
    Reduce reduce = Reduce::maximum;
    std::vector<Level> levels;
    size_t columns() const { return levels.empty() ? 0 : levels.front().columns; }
    float at(size_t row, size_t column) const { return levels.front().values[row * columns() + column]; }
};

/// @throws std::invalid_argument where there are not rows * columns values
Pyramid make_pyramid(std::vector<float> values, size_t rows, size_t columns, Reduce reduce);

/// The greater by `reduce`; NaN only of two NaN.
float reduced(Reduce reduce, float a, float b);

}  // namespace kvscope::gui
