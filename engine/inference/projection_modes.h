#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/transformer.h"

namespace kvscope::engine {

/// Returns the modes of a layer's heads: the eigenvectors of W W^T in descending order of eigenvalue, (H + 2G, d, d)
/// f32. Row i of a head's matrix is the direction in y = x W^T that belongs to mode i. A head whose decomposition fails
/// gets NaN. Solved in f64; the result does not depend on the number of threads.
std::vector<float> layer_modes(const Transformer& model, int layer);

/// Returns the modes of all layers, (L, H + 2G, d, d). They depend only on the weights and are stored in the user's
/// cache after the first call, bit by bit.
/// @param fingerprint of the model's files
/// @throws Cancelled
std::vector<float> projection_modes(const Transformer& model, const std::string& fingerprint, Progress& progress);

}  // namespace kvscope::engine
