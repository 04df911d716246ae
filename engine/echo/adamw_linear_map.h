#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/echo/resumable_state.h"
#include "policies/methods/echo_maps.h"

namespace kvscope::engine {

/// A map that gradient descent changes, with the optimizer's moments.
class TunedMap {
 public:
    explicit TunedMap(const policies::Matrix& from);

    /// The transposed map, (outputs, inputs) f32, contiguous.
    [[nodiscard]] const at::Tensor& weights() const { return weights_; }
    [[nodiscard]] policies::Matrix matrix() const;

    /// Performs step t, counted from 1, of AdamW (Loshchilov and Hutter, 2019, algorithm 2) with PyTorch's betas 0.9
    /// and 0.999 and weight decay 0.01: m = 0.9 m + 0.1 g, v = 0.999 v + 0.001 g^2,
    /// w -= rate (0.01 w + m / (1 - 0.9^t) / (sqrt(v / (1 - 0.999^t)) + 1e-8)).
    /// @param gradient (outputs, inputs) f32
    void step(const at::Tensor& gradient, double rate, int64_t t);

    void add_parts(ResumableState::Parts& parts);

 private:
    at::Tensor weights_, mean_, square_;
};

}  // namespace kvscope::engine
