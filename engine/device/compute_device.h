#pragma once

#include <c10/core/Device.h>

#include "kernels/backend.h"

namespace kvscope::engine {

/// Where a model's arrays lie, and what computes on them.
struct ComputeDevice {
    c10::Device place = c10::kCPU;
    const kernels::Backend* backend = &kernels::cpu_backend();  ///< lives as long as the program

    bool is_processor() const { return backend->is_processor(); }
};

}  // namespace kvscope::engine
