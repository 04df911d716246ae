#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/linear_tile.h"

namespace kvscope::kernels::cuda {

/// Each function has its own source file, because these kernels take the longest to compile.
void launch_linear_with_f32_inputs(WeightFormat format, const LinearProblem& problem, cudaStream_t stream);
void launch_linear_with_bf16_inputs(WeightFormat format, const LinearProblem& problem, cudaStream_t stream);

[[nodiscard]] inline dim3 linear_blocks(const LinearProblem& p, int rows, int outputs) {
    return {static_cast<unsigned>(divide_rounding_up(p.out, outputs)),
            static_cast<unsigned>(divide_rounding_up(p.n_rows, rows))};
}

}  // namespace kvscope::kernels::cuda
