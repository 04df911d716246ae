#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/backend.h"

namespace kvscope::engine {

/// Where a model's arrays lie, and what computes on them.
struct ComputeDevice {
    at::Device place = at::kCPU;
    const kernels::Backend* backend = &kernels::cpu_backend();  ///< lives as long as the program

    bool is_processor() const { return backend->is_processor(); }
};

}  // namespace kvscope::engine
