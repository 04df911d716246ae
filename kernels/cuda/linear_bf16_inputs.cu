#include "kernels/cuda/linear_launch.h"
#include "kernels/cuda/linear_matrix_tile.h"

namespace kvscope::kernels::cuda {

namespace {

// On sm_100 some kernels need more registers than two blocks per multiprocessor allow.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr bool needs_more = true;
#else
constexpr bool needs_more = false;
#endif

/// `B` is the number of blocks that must fit into a multiprocessor's registers at a time.
template <WeightFormat format, int M, int R, int B>
__global__ __launch_bounds__(matrix_threads, needs_more&& M == 4 && can_load_block_parts(format)
                                                 ? 1
                                                 : B) void multiply_matrices(LinearProblem p) {
    using Tile = LinearMatrixTile<DeviceBlock<matrix_threads>, format, M, R>;
    __shared__ typename Tile::Shared shared;
    DeviceBlock<matrix_threads> block;
    Tile{p, int64_t{blockIdx.x} * Tile::block_rows, int64_t{blockIdx.y} * Tile::block_outputs}.multiply(block, shared);
}

/// Launches blocks of the same outputs next to each other, so that they share weights through the cache.
template <WeightFormat format, int M, int R, int B = 2>
void launch(const LinearProblem& p, cudaStream_t stream) {
    const dim3 blocks(static_cast<unsigned>(divide_rounding_up(p.n_rows, 8 * M)),
                      static_cast<unsigned>(divide_rounding_up(p.out, 16 * R)));
    multiply_matrices<format, M, R, B><<<blocks, matrix_threads, 0, stream>>>(p);
}

}  // namespace

void launch_linear_with_bf16_inputs(WeightFormat format, const LinearProblem& p, cudaStream_t stream) {
    with_format(format, [&]<WeightFormat f>() {
        if (p.n_rows <= 8) return launch<f, 1, 1>(p, stream);
        if (p.n_rows <= 16) return launch<f, 2, 1>(p, stream);
        // Formats whose loaded weights need more registers use fewer registers for sums.
        constexpr bool is_large = f == WeightFormat::f32;
        constexpr int output_tiles =
            !is_large && (is_unquantized(f) || (can_load_block_parts(f) && block_size_of_format(f).bytes <= 22)) ? 2
                                                                                                                 : 1;
        if (p.n_rows <= 32 || is_large) return launch<f, 4, output_tiles>(p, stream);
        if constexpr (can_load_block_parts(f))
            launch<f, 7, output_tiles, 1>(p, stream);
        else if constexpr (!is_large)
            launch<f, 7, 2>(p, stream);
    });
}

}  // namespace kvscope::kernels::cuda
