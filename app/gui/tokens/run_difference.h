#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "app/gui/drawing/heat_map.h"

namespace kvscope::gui {

/// Two runs with a common number of rows. If one run counts query heads and the other KV heads, each KV head represents
/// its group of query heads.
struct RunPair {
    std::shared_ptr<const trace::Kept> a, b;
    size_t n_tokens = 0;
    size_t n_layers = 0;
    size_t n_rows = 0;  ///< the larger number of rows of the two runs

    [[nodiscard]] bool merges() const { return a->merges() || b->merges(); }
    /// Returns the entries of a token in one row or in all rows of a layer. A token in an entry of n tokens counts 1/n.
    [[nodiscard]] double entries(const trace::Kept& kept, size_t layer, size_t row, uint32_t token) const;
    [[nodiscard]] double entries(const trace::Kept& kept, size_t layer, uint32_t token) const;
};

/// Differences between the kept sets of runs A and B.
struct RunDifference {
    RunPair pair;
    Pyramid map;                  ///< (L, N), or (R, N) for one layer: scale_difference_to_color() or classes
    std::vector<double> overlap;  ///< (L) overlap of the kept sets in each layer
    double overlap_total = 0;
};

/// @param layer layer whose heads are the map's rows, or −1 for a map with a row per layer
/// @param classes whether the map's values are classes: 0 if no run keeps the token, 1 if both do, 2 only A, 3 only B
/// @throws std::runtime_error if the runs cannot be compared
[[nodiscard]] RunDifference compare_kept_tokens(const RunAt& a, const RunAt& b, int layer, bool classes);

/// Maps a difference in heads to a color value. One head is clearly visible, and fractions of a head are fainter.
/// Returns NaN for zero, which has the background color.
[[nodiscard]] float scale_difference_to_color(float difference, float most);

}  // namespace kvscope::gui
