#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/linear_tile.h"

namespace kvscope::kernels::cuda {

// One file each: of all kernels these take the longest to compile.
void launch_linear_f32(WeightFormat format, const LinearProblem& problem, cudaStream_t stream);
void launch_linear_bf16(WeightFormat format, const LinearProblem& problem, cudaStream_t stream);

template <class T, WeightFormat format, int M>
__global__ __launch_bounds__(kLinearThreads, 1) void multiply_rows(LinearProblem p) {
    using Tile = LinearTile<DeviceBlock<kLinearThreads>, T, format, M>;
    DeviceBlock<kLinearThreads> block;
    Tile{p, int64_t{blockIdx.y} * M, int64_t{blockIdx.x} * Tile::kOutputsOfBlock}.multiply(block);
}

/// @tparam M rows at once: whatever it is, the order of a row's sum is the same
template <class T, int M>
void launch_linear(WeightFormat format, const LinearProblem& p, cudaStream_t stream) {
    with_format(format, [&]<WeightFormat f>() {
        constexpr int kOutputs = LinearTile<DeviceBlock<kLinearThreads>, T, f, M>::kOutputsOfBlock;
        const dim3 blocks(static_cast<unsigned>(pieces_of(p.out, kOutputs)),
                          static_cast<unsigned>(pieces_of(p.n_rows, M)));
        multiply_rows<T, f, M><<<blocks, kLinearThreads, 0, stream>>>(p);
    });
}

}  // namespace kvscope::kernels::cuda
