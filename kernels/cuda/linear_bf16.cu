#include "kernels/cuda/linear_launch.h"
#include "kernels/cuda/linear_matrix_tile.h"

namespace kvscope::kernels::cuda {

namespace {

template <WeightFormat format, int M, int R>
__global__ __launch_bounds__(kMatrixThreads, M* R <= 4 ? 2 : 1) void multiply_matrices(LinearProblem p) {
    using Tile = LinearMatrixTile<DeviceBlock<kMatrixThreads>, format, M, R>;
    __shared__ typename Tile::Shared shared;
    DeviceBlock<kMatrixThreads> block;
    Tile{p, int64_t{blockIdx.y} * Tile::kRows, int64_t{blockIdx.x} * Tile::kOutputs}.multiply(block, shared);
}

template <int M, int R>
void launch(WeightFormat format, const LinearProblem& p, cudaStream_t stream) {
    with_format(format, [&]<WeightFormat f>() {
        multiply_matrices<f, M, R><<<linear_blocks(p, 8 * M, 16 * R), kMatrixThreads, 0, stream>>>(p);
    });
}

}  // namespace

void launch_linear_bf16(WeightFormat format, const LinearProblem& problem, cudaStream_t stream) {
    if (problem.n_rows <= 8) return launch<1, 1>(format, problem, stream);
    if (problem.n_rows <= 16) return launch<2, 1>(format, problem, stream);
    if (problem.n_rows <= 32) return launch<4, 2>(format, problem, stream);
    launch<8, 2>(format, problem, stream);
}

}  // namespace kvscope::kernels::cuda
