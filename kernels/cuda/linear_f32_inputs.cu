#include "kernels/cuda/linear_launch.h"

namespace kvscope::kernels::cuda {

namespace {

template <WeightFormat format, int M>
__global__ __launch_bounds__(linear_threads, 1) void multiply_rows(LinearProblem p) {
    using Tile = LinearTile<DeviceBlock<linear_threads>, format, M>;
    DeviceBlock<linear_threads> block;
    Tile{p, int64_t{blockIdx.y} * M, int64_t{blockIdx.x} * Tile::outputs_of_block}.multiply(block);
}

/// `M` is the number of rows per block. A row's sum does not depend on M.
template <int M>
void launch(WeightFormat format, const LinearProblem& p, cudaStream_t stream) {
    with_format(format, [&]<WeightFormat f>() {
        constexpr int block_outputs = LinearTile<DeviceBlock<linear_threads>, f, M>::outputs_of_block;
        multiply_rows<f, M><<<linear_blocks(p, M, block_outputs), linear_threads, 0, stream>>>(p);
    });
}

}  // namespace

void launch_linear_with_f32_inputs(WeightFormat format, const LinearProblem& problem, cudaStream_t stream) {
    if (problem.n_rows <= 1) return launch<1>(format, problem, stream);
    launch<linear_most_rows>(format, problem, stream);
}

}  // namespace kvscope::kernels::cuda
