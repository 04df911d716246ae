#pragma once

#include <c10/core/Device.h>

#include "kernels/backend.h"

namespace kvscope::engine {

/// Place of a model's arrays, and the backend that computes there.
struct ComputeDevice {
    c10::Device place = c10::kCPU;
    const kernels::Backend* backend = &kernels::cpu_backend();  ///< valid until the program ends

    [[nodiscard]] bool is_processor() const { return backend->is_processor(); }
};

}  // namespace kvscope::engine
