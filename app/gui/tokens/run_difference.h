#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "app/gui/drawing/pyramid.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Two runs whose heads are counted alike: where one has query heads and the other KV heads, a KV head stands for its
/// group.
struct RunPair {
    std::shared_ptr<const trace::Kept> a, b;
    size_t n_tokens = 0;
    size_t n_layers = 0;
    size_t n_rows = 0;  ///< the larger of the two

    bool merges() const { return a->merges() || b->merges(); }
    /// What a head holds of a token, in entries: 1, 1/n in an entry of n, 0; and all heads of a layer. @param kept a or
    /// b
    double entries(const trace::Kept& kept, size_t layer, size_t row, uint32_t token) const;
    double entries(const trace::Kept& kept, size_t layer, uint32_t token) const;
};

/// Where A keeps more than B, and where less.
struct RunDifference {
    RunPair pair;
    Pyramid map;                  ///< (L, N), or (R, N) of one layer, of drawn_difference() or of classes
    std::vector<double> overlap;  ///< (L)
    double overlap_total = 0;
};

/// @param layer whose heads are the map's rows; −1: all layers are
/// @param classes 0 kept by neither, 1 by both, 2 by A alone, 3 by B alone, in place of differences
/// @throws std::runtime_error where the two cannot be laid over each other
RunDifference compare_runs(const RunAt& a, const RunAt& b, int layer, bool classes);

/// Signed numbers of heads as they are drawn: a difference of one head is told from none at once, parts of one, where
/// tokens share entries, by degrees, and none is NaN, the ground itself.
float drawn_difference(float difference, float most);

}  // namespace kvscope::gui
