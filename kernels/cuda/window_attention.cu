#include "kernels/cuda/abi.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/window_tile.h"

namespace kvscope::kernels::cuda {

namespace {

constexpr const char* kernel_name = "window_attention";
using Block = DeviceBlock<window_tile_keys>;

/// Computes softmax sums (H, w, tiles) per head, query and tile of keys. Grid (tiles, H, query blocks).
template <class T>
__global__ __launch_bounds__(window_tile_keys) void tile_sums(WindowAttention p, int64_t n_keys, Softmax* sums) {
    __shared__ WindowShared shared;
    Block block;
    const int head = static_cast<int>(blockIdx.y), first = static_cast<int>(blockIdx.z) * window_tile_queries;
    WindowTile<Block, T>{p, n_keys, int64_t{blockIdx.x} * window_tile_keys}.sum(
        block, head, first, shared, sums + int64_t{head} * p.window * gridDim.x + blockIdx.x, gridDim.x);
}

/// Joins the tiles of each query, one thread per head and query (H, w).
__global__ void query_totals(int64_t n_queries, int64_t n_tiles, const Softmax* sums, Softmax* totals) {
    const int64_t query = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (query < n_queries) totals[query] = join_window_softmax(sums, n_tiles, query);
}

/// Computes the mean weight of each key. Grid (tiles, H).
template <class T>
__global__ __launch_bounds__(window_tile_keys) void key_means(WindowAttention p, int64_t n_keys,
                                                              const Softmax* totals) {
    __shared__ WindowShared shared;
    Block block;
    const int head = static_cast<int>(blockIdx.y);
    WindowTile<Block, T>{p, n_keys, int64_t{blockIdx.x} * window_tile_keys}.mean(
        block, head, totals + int64_t{head} * p.window, shared);
}

/// Computes each key's largest weight in any KV head, averaged over queries. Grid (tiles).
template <class T>
__global__ __launch_bounds__(window_tile_keys) void key_peaks(WindowAttention p, int64_t n_keys,
                                                              const Softmax* totals) {
    __shared__ WindowShared shared;
    Block block;
    WindowTile<Block, T>{p, n_keys, int64_t{blockIdx.x} * window_tile_keys}.peak(block, totals, shared);
}

struct WindowPlan {
    int64_t n_keys, n_tiles, n_queries;
    Softmax *sums, *totals;

    WindowPlan(const WindowAttention& p, Workspace& workspace)
        : n_keys(p.prefix_only ? p.n_tokens - p.window : p.n_tokens),
          n_tiles(divide_rounding_up(n_keys, window_tile_keys)),
          n_queries(int64_t{p.n_heads} * p.window),
          sums(workspace.place<Softmax>(static_cast<size_t>(n_queries * n_tiles))),
          totals(workspace.place<Softmax>(static_cast<size_t>(n_queries))) {}
};

template <class T>
void launch(const WindowAttention& p, const WindowPlan& plan, bool peak, cudaStream_t stream) {
    const dim3 tiles(to_grid_size(plan.n_tiles), to_grid_size(p.n_heads),
                     to_grid_size(divide_rounding_up(p.window, window_tile_queries)));
    tile_sums<T><<<tiles, window_tile_keys, 0, stream>>>(p, plan.n_keys, plan.sums);
    query_totals<<<to_grid_size(divide_rounding_up(plan.n_queries, 128)), 128, 0, stream>>>(
        plan.n_queries, plan.n_tiles, plan.sums, plan.totals);
    if (peak)
        key_peaks<T><<<tiles.x, window_tile_keys, 0, stream>>>(p, plan.n_keys, plan.totals);
    else
        key_means<T><<<dim3(tiles.x, tiles.y), window_tile_keys, 0, stream>>>(p, plan.n_keys, plan.totals);
}

bool run(const WindowAttention& p, bool peak, const Call& call) {
    Workspace workspace(call.workspace);
    const WindowPlan plan(p, workspace);
    if (plan.n_keys == 0) return true;
    if (!call.fits(kernel_name, workspace)) return false;
    if (p.keys_dtype == DType::f32)
        launch<float>(p, plan, peak, call.queue());
    else
        launch<bf16>(p, plan, peak, call.queue());
    return call.launched(kernel_name);
}

}  // namespace

}  // namespace kvscope::kernels::cuda

KVSCOPE_CUDA_EXPORT size_t kvscope_cuda_window_attention_workspace(const kvscope::kernels::WindowAttention* problem) {
    using namespace kvscope::kernels::cuda;
    Workspace workspace;
    const WindowPlan plan(*problem, workspace);
    return workspace.bytes();
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_window_attention(const kvscope::kernels::WindowAttention* problem,
                                                       void* workspace, size_t workspace_bytes, void* stream,
                                                       char* error, size_t error_size) {
    using namespace kvscope::kernels::cuda;
    const Call call{workspace, workspace_bytes, stream, error, error_size};
    return call.guarded(kernel_name, [&] { return run(*problem, false, call); });
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_window_peak(const kvscope::kernels::WindowAttention* problem, void* workspace,
                                                  size_t workspace_bytes, void* stream, char* error,
                                                  size_t error_size) {
    using namespace kvscope::kernels::cuda;
    const Call call{workspace, workspace_bytes, stream, error, error_size};
    return call.guarded(kernel_name, [&] { return run(*problem, true, call); });
}
