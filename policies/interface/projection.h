#pragma once

#include <vector>

namespace kvscope::policies {

enum class Projected { keys, values };

/// What a layer makes keys (before RoPE) or values of, for an input x: weight x + bias. Heads are one after the other.
struct Projection {
    int n_out = 0;              ///< G d
    int n_in = 0;               ///< hidden
    std::vector<float> weight;  ///< (n_out, n_in), row after row
    std::vector<float> bias;    ///< (n_out); empty: none
    /// Each head of what comes out is normalised before RoPE, so that it is no linear function of x.
    bool is_normalised = false;
};

}  // namespace kvscope::policies
