#include "kernels/cuda/linear_launch.h"

namespace kvscope::kernels::cuda {

void launch_linear_bf16(WeightFormat format, const LinearProblem& problem, cudaStream_t stream) {
    if (problem.n_rows <= 1) return launch_linear<bf16, 1>(format, problem, stream);
    if (problem.n_rows <= 4) return launch_linear<bf16, 4>(format, problem, stream);
    launch_linear<bf16, kLinearMostRows<bf16>>(format, problem, stream);
}

}  // namespace kvscope::kernels::cuda
