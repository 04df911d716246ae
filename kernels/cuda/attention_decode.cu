#include "kernels/cuda/abi.h"
#include "kernels/cuda/decode_plan.h"
#include "kernels/cuda/launch.h"

namespace kvscope::kernels::cuda {

namespace {

constexpr const char* kernel_name = "attention_decode";
using Block = DeviceBlock<decode_threads>;

template <class T, int Q>
__global__ __launch_bounds__(decode_threads, 1) void attend_pieces(DecodeArrays arrays, const DecodePass* passes,
                                                                   int64_t n_passes) {
    extern __shared__ uint4 memory[];
    __shared__ DecodeChain* chain;
    Block block;
    const DecodePass& pass = passes[item_of_block(passes, n_passes, blockIdx.x, gridDim.x)];
    if (threadIdx.x == 0) chain = arrays.chains + arrays.parts[pass.part].chain;
    DecodePiece<Block, T, Q>(arrays, pass, blockIdx.x).attend(block, *reinterpret_cast<DecodeShared<T, Q>*>(memory));
    join_if_last<T>(block, arrays, chain);
}

/// Number of blocks that must fit into a multiprocessor's registers at a time.
template <int D, int Q>
constexpr int matrix_blocks = D > 128           ? 1
                              : D > 64 && Q > 4 ? 3
                                                : 4;

template <int D, int Q>
__global__ __launch_bounds__(decode_threads, matrix_blocks<D, Q>) void multiply_pieces(DecodeArrays arrays,
                                                                                       const DecodePass* passes,
                                                                                       int64_t n_passes) {
    __shared__ DecodeMatrixShared<D> shared;
    __shared__ DecodeChain* chain;
    Block block;
    const DecodePass& pass = passes[item_of_block(passes, n_passes, blockIdx.x, gridDim.x)];
    if (threadIdx.x == 0) chain = arrays.chains + arrays.parts[pass.part].chain;
    DecodeMatrixPiece<Block, D, Q>(arrays, pass, blockIdx.x).attend(block, shared);
    join_if_last<bf16>(block, arrays, chain);
}

__global__ __launch_bounds__(decode_threads) void scale_weights(DecodeArrays arrays, const DecodePass* passes,
                                                                int64_t n_passes, int most_queries) {
    Block block;
    const DecodePass& pass = passes[item_of_block(passes, n_passes, blockIdx.x, gridDim.x)];
    scale_decode_weights(block, arrays, pass, blockIdx.x, most_queries);
}

template <class T, int Q>
bool launch_pieces(const DecodePlan::Passes& all, const DecodePass* passes, const DecodeArrays& arrays,
                   const Call& call) {
    using Shared = DecodeShared<T, Q>;
    if (all.n_blocks == 0) return true;
    const auto kernel = attend_pieces<T, Q>;
    if (!call.opted_in<Shared>(kernel_name, kernel)) return false;
    kernel<<<to_grid_size(all.n_blocks), decode_threads, sizeof(Shared), call.queue()>>>(
        arrays, passes, static_cast<int64_t>(all.passes.size()));
    return true;
}

template <int D, int Q>
void launch_matrices(const DecodePlan::Passes& all, const DecodePass* passes, const DecodeArrays& arrays,
                     const Call& call) {
    if (all.n_blocks == 0) return;
    multiply_pieces<D, Q><<<to_grid_size(all.n_blocks), decode_threads, 0, call.queue()>>>(
        arrays, passes, static_cast<int64_t>(all.passes.size()));
}

template <int D>
void launch_matrices(const DecodePlan& plan, const DecodePlan::Placed& placed, const Call& call) {
    constexpr size_t kind = DecodePlan::first_matrix_kind;
    launch_matrices<D, 4>(plan.of_kinds[kind], placed.passes[kind], placed.arrays, call);
    launch_matrices<D, 8>(plan.of_kinds[kind + 1], placed.passes[kind + 1], placed.arrays, call);
}

template <class T>
bool decode(std::span<const DecodeRow> rows, int head_dim, float scale, const Call& call) {
    std::string refused;
    const DecodePlan plan = DecodePlan::make<T>(rows, head_dim, refused);
    if (!refused.empty()) return call.refuse(kernel_name, refused.c_str());
    if (plan.chains.empty()) return true;
    for (const DecodePlan::Passes& all : plan.of_kinds)
        if (all.n_blocks > most_blocks) return call.refuse(kernel_name, "too many entries");
    Workspace layout;
    plan.place(layout, head_dim, scale);
    Staging staging = call.staging(layout.host_bytes());
    Workspace workspace(call.workspace, staging.place());
    const DecodePlan::Placed placed = plan.place(workspace, head_dim, scale);
    if (!call.upload(kernel_name, workspace, staging)) return false;
    const cudaStream_t stream = call.queue();
    if (!launch_pieces<T, 1>(plan.of_kinds[0], placed.passes[0], placed.arrays, call) ||
        !launch_pieces<T, 2>(plan.of_kinds[1], placed.passes[1], placed.arrays, call) ||
        !launch_pieces<T, 4>(plan.of_kinds[2], placed.passes[2], placed.arrays, call) ||
        !launch_pieces<T, 8>(plan.of_kinds[3], placed.passes[3], placed.arrays, call))
        return false;
    const int width = DecodePlan::matrix_width(head_dim);
    if (width == 64)
        launch_matrices<64>(plan, placed, call);
    else if (width == 128)
        launch_matrices<128>(plan, placed, call);
    else
        launch_matrices<256>(plan, placed, call);
    for (size_t i = 0; plan.wants_attention && i < plan.of_kinds.size(); ++i) {
        const DecodePlan::Passes& all = plan.of_kinds[i];
        if (all.n_blocks == 0) continue;
        scale_weights<<<to_grid_size(all.n_blocks), decode_threads, 0, stream>>>(
            placed.arrays, placed.passes[i], static_cast<int64_t>(all.passes.size()), DecodePlan::queries_of_kind[i]);
    }
    return call.launched(kernel_name);
}

template <class T>
size_t bytes_for(std::span<const DecodeRow> rows, int head_dim) {
    std::string refused;
    Workspace workspace;
    DecodePlan::make<T>(rows, head_dim, refused).place(workspace, head_dim, 1.0f);
    return workspace.bytes();
}

}  // namespace

}  // namespace kvscope::kernels::cuda

KVSCOPE_CUDA_EXPORT size_t kvscope_cuda_attention_decode_workspace(const kvscope::kernels::DecodeRow* rows,
                                                                   size_t n_rows, int head_dim,
                                                                   kvscope::kernels::DType dtype) {
    using namespace kvscope::kernels;
    return dtype == DType::f32 ? cuda::bytes_for<float>({rows, n_rows}, head_dim)
                               : cuda::bytes_for<bf16>({rows, n_rows}, head_dim);
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_attention_decode(const kvscope::kernels::DecodeRow* rows, size_t n_rows,
                                                       int head_dim, kvscope::kernels::DType dtype, float scale,
                                                       void* workspace, size_t workspace_bytes, void* stream,
                                                       char* error, size_t error_size) {
    using namespace kvscope::kernels;
    const cuda::Call call{workspace, workspace_bytes, stream, error, error_size};
    return call.guarded(cuda::kernel_name, [&] {
        if (dtype == DType::f32) return cuda::decode<float>({rows, n_rows}, head_dim, scale, call);
        if (dtype == DType::bf16) return cuda::decode<bf16>({rows, n_rows}, head_dim, scale, call);
        return call.refuse(cuda::kernel_name, "expected f32 or bf16, found f16");
    });
}
