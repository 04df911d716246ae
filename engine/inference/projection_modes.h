#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Modes of a layer's heads: eigenvectors of W W^T by falling eigenvalue, (H + 2G, d, d) f32. Row i of a head's matrix
/// is the direction of y = x W^T that mode i makes. NaN for a head whose weights have none. Solved in f64, the same
/// with any number of threads.
std::vector<float> layer_modes(const Transformer& model, int layer);

/// Those of all layers, (L, H + 2G, d, d), which follow from the weights alone: read from the user's cache, or worked
/// out and kept there for the next time. What is read is what was worked out, to the last bit.
/// @param fingerprint of the model's files
/// @throws Cancelled
std::vector<float> projection_modes(const Transformer& model, const std::string& fingerprint, Progress& progress);

}  // namespace kvscope::engine
