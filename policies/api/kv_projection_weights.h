#pragma once

#include <vector>

namespace kvscope::policies {

enum class Projected { keys, values };

/// A layer's projection to keys (before RoPE) or values. It maps an input x to weight x + bias.
struct Projection {
    int n_out = 0;              ///< G d, the size of the output
    int n_in = 0;               ///< size of the hidden state
    std::vector<float> weight;  ///< (n_out, n_in), row by row
    std::vector<float> bias;    ///< (n_out); empty if the model has no bias
    /// Whether the model normalizes each head's keys before RoPE.
    bool is_normalised = false;
};

}  // namespace kvscope::policies
