#pragma once

#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Returns the modes of a layer's heads, (H + 2G, d, d) f32: eigenvectors of W W^T as rows, in descending order of
/// eigenvalue. A head whose decomposition fails gets NaN. The f64 solution does not depend on the number of threads.
[[nodiscard]] std::vector<float> layer_projection_eigenvectors(const Transformer& model, int layer);

/// Returns the modes of all layers, (L, H + 2G, d, d). Stores them in the user's cache under the model's fingerprint.
[[nodiscard]] std::vector<float> projection_eigenvectors(const Transformer& model, const std::string& fingerprint,
                                                         Progress& progress);

}  // namespace kvscope::engine
