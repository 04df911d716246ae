#include "kernels/cuda/linear_launch.h"

namespace kvscope::kernels::cuda {

void launch_linear_f32(WeightFormat format, const LinearProblem& problem, cudaStream_t stream) {
    if (problem.n_rows <= 1) return launch_linear<float, 1>(format, problem, stream);
    launch_linear<float, kLinearMostRows<float>>(format, problem, stream);
}

}  // namespace kvscope::kernels::cuda
