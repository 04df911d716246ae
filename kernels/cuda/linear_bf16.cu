#include "kernels/cuda/linear_launch.h"
#include "kernels/cuda/linear_matrix_tile.h"

namespace kvscope::kernels::cuda {

namespace {

template <WeightFormat format, int M, int R>
__global__ __launch_bounds__(kMatrixThreads, 2) void multiply_matrices(LinearProblem p) {
    using Tile = LinearMatrixTile<DeviceBlock<kMatrixThreads>, format, M, R>;
    __shared__ typename Tile::Shared shared;
    DeviceBlock<kMatrixThreads> block;
    Tile{p, int64_t{blockIdx.x} * Tile::kRows, int64_t{blockIdx.y} * Tile::kOutputs}.multiply(block, shared);
}

/// Blocks of the same outputs beside one another: what one has read of the weights the next finds in the cache.
template <WeightFormat format, int M, int R>
void launch(const LinearProblem& p, cudaStream_t stream) {
    const dim3 blocks(static_cast<unsigned>(pieces_of(p.n_rows, 8 * M)),
                      static_cast<unsigned>(pieces_of(p.out, 16 * R)));
    multiply_matrices<format, M, R><<<blocks, kMatrixThreads, 0, stream>>>(p);
}

}  // namespace

void launch_linear_bf16(WeightFormat format, const LinearProblem& p, cudaStream_t stream) {
    with_format(format, [&]<WeightFormat f>() {
        if (p.n_rows <= 8) return launch<f, 1, 1>(p, stream);
        if (p.n_rows <= 16) return launch<f, 2, 1>(p, stream);
        // What is held of stored weights leaves registers for fewer sums.
        if constexpr (loads_parts(f)) {
            constexpr bool is_short = block_of(f).bytes <= 22;
            launch<f, 4, is_short ? 2 : 1>(p, stream);
        } else {
            if (p.n_rows <= 32) return launch<f, 4, 2>(p, stream);
            launch<f, 8, 2>(p, stream);
        }
    });
}

}  // namespace kvscope::kernels::cuda
