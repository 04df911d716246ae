#include <cuda_bf16.h>

#include "kernels/cuda/abi.h"
#include "kernels/cuda/export.h"

namespace kvscope::kernels::cuda {

namespace {

constexpr int kKeys = 128;    ///< keys of a tile, and threads of a block: one each
constexpr int kQueries = 16;  ///< queries worked on at once
constexpr int kDims = 32;     ///< elements of the head held in shared memory at once
constexpr float kNone = -INFINITY;

struct Softmax {
    float largest, total;
};

__device__ float widen(float x) { return x; }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

/// Joins the softmax sums of two sets of keys, either of which may be empty.
__device__ Softmax join(Softmax a, Softmax b) {
    const float largest = fmaxf(a.largest, b.largest);
    if (largest == kNone) return {kNone, 0};
    return {largest, a.total * expf(a.largest - largest) + b.total * expf(b.largest - largest)};
}

/// Logits of this thread's key for queries [first, first + kQueries) of a head; kNone where a query does not see it.
template <class Key>
__device__ void logits(const WindowAttention& p, int head, int first, int64_t tile, int64_t n_keys,
                       float (&out)[kQueries]) {
    __shared__ float keys[kKeys][kDims + 1];
    __shared__ float queries[kQueries][kDims];
    const int kv_head = head / (p.n_heads / p.n_kv_heads);
    const Key* key_rows = static_cast<const Key*>(p.keys) + kv_head * p.key_head_stride + tile * kKeys * p.head_dim;
    const float* query_rows = p.queries + head * p.query_head_stride + int64_t{first} * p.head_dim;
    const int64_t keys_left = n_keys - tile * kKeys;

    for (int i = 0; i < kQueries; ++i) out[i] = 0;
    for (int c0 = 0; c0 < p.head_dim; c0 += kDims) {
        __syncthreads();  // the last round's reads are over
        for (int e = threadIdx.x; e < kKeys * kDims; e += kKeys) {
            const int row = e / kDims, c = e % kDims;
            const bool exists = row < keys_left && c0 + c < p.head_dim;
            keys[row][c] = exists ? widen(key_rows[int64_t{row} * p.head_dim + c0 + c]) : 0.0f;
        }
        for (int e = threadIdx.x; e < kQueries * kDims; e += kKeys) {
            const int row = e / kDims, c = e % kDims;
            const bool exists = first + row < p.window && c0 + c < p.head_dim;
            queries[row][c] = exists ? query_rows[int64_t{row} * p.head_dim + c0 + c] : 0.0f;
        }
        __syncthreads();
#pragma unroll 8
        for (int c = 0; c < kDims; ++c) {
            const float key = keys[threadIdx.x][c];
#pragma unroll
            for (int i = 0; i < kQueries; ++i) out[i] = fmaf(queries[i][c], key, out[i]);
        }
    }
    const int64_t key = tile * kKeys + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
        const int64_t position = p.n_tokens - p.window + first + i;
        const bool seen = first + i < p.window && key < n_keys && key <= position &&
                          (p.sliding_window == 0 || key > position - p.sliding_window);
        out[i] = seen ? out[i] * p.scale : kNone;
    }
}

/// Per head, query and tile of keys the softmax sums: (H, w, tiles). Grid (tiles, H, query blocks).
template <class Key>
__global__ void tile_sums(WindowAttention p, int64_t n_keys, Softmax* sums) {
    const int head = blockIdx.y, first = blockIdx.z * kQueries;
    float x[kQueries];
    logits<Key>(p, head, first, blockIdx.x, n_keys, x);

    __shared__ Softmax warps[kQueries][kKeys / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll  // so that x stays in registers
    for (int i = 0; i < kQueries; ++i) {
        Softmax sum{x[i], x[i] == kNone ? 0.0f : 1.0f};
        for (int step = 16; step > 0; step /= 2) {
            const Softmax other{__shfl_xor_sync(0xffffffffu, sum.largest, step),
                                __shfl_xor_sync(0xffffffffu, sum.total, step)};
            sum = join(sum, other);
        }
        if (lane == 0) warps[i][warp] = sum;
    }
    __syncthreads();
    const int i = threadIdx.x;
    if (i < kQueries && first + i < p.window) {
        Softmax sum = warps[i][0];
        for (int w = 1; w < kKeys / 32; ++w) sum = join(sum, warps[i][w]);
        sums[(int64_t{head} * p.window + first + i) * gridDim.x + blockIdx.x] = sum;
    }
}

/// Joins a query's tiles into totals (H, w). One thread per head and query.
__global__ void query_sums(int64_t n_queries, int64_t n_tiles, const Softmax* sums, Softmax* totals) {
    const int64_t query = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (query >= n_queries) return;
    Softmax total{kNone, 0};
    for (int64_t tile = 0; tile < n_tiles; ++tile) total = join(total, sums[query * n_tiles + tile]);
    totals[query] = total;
}

/// Mean weight of each key over the window's queries. Grid (tiles, H).
template <class Key>
__global__ void key_means(WindowAttention p, int64_t n_keys, const Softmax* totals) {
    const int head = blockIdx.y;
    float sum = 0;
    for (int first = 0; first < p.window; first += kQueries) {
        float x[kQueries];
        logits<Key>(p, head, first, blockIdx.x, n_keys, x);
#pragma unroll
        for (int i = 0; i < kQueries; ++i) {
            if (x[i] == kNone) continue;
            const Softmax total = totals[int64_t{head} * p.window + first + i];
            sum += expf(x[i] - total.largest) / total.total;
        }
    }
    const int64_t key = int64_t{blockIdx.x} * kKeys + threadIdx.x;
    if (key < n_keys) p.mean[head * n_keys + key] = sum / static_cast<float>(p.window);
}

template <class Key>
void launch(const WindowAttention& p, int64_t n_keys, int64_t n_tiles, Softmax* sums, Softmax* totals) {
    const int query_blocks = (p.window + kQueries - 1) / kQueries;
    const dim3 tiles(static_cast<unsigned>(n_tiles), static_cast<unsigned>(p.n_heads),
                     static_cast<unsigned>(query_blocks));
    tile_sums<Key><<<tiles, kKeys>>>(p, n_keys, sums);
    const int64_t n_queries = int64_t{p.n_heads} * p.window;
    query_sums<<<static_cast<unsigned>((n_queries + 127) / 128), 128>>>(n_queries, n_tiles, sums, totals);
    key_means<Key><<<dim3(tiles.x, tiles.y), kKeys>>>(p, n_keys, totals);
}

}  // namespace

}  // namespace kvscope::kernels::cuda

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_window_attention(const kvscope::kernels::WindowAttention& problem, char* error,
                                                       size_t error_size) {
    using namespace kvscope::kernels;
    const int64_t n_keys = problem.prefix_only ? problem.n_tokens - problem.window : problem.n_tokens;
    if (n_keys == 0) return true;
    const int64_t n_tiles = (n_keys + cuda::kKeys - 1) / cuda::kKeys;
    const size_t n_queries = static_cast<size_t>(problem.n_heads) * static_cast<size_t>(problem.window);
    cuda::Softmax* sums = nullptr;
    const size_t bytes = n_queries * static_cast<size_t>(n_tiles + 1) * sizeof(cuda::Softmax);
    if (!cuda::succeeded(cudaMalloc(reinterpret_cast<void**>(&sums), bytes), "allocating device memory", error,
                         error_size))
        return false;
    cuda::Softmax* totals = sums + n_queries * static_cast<size_t>(n_tiles);
    if (problem.keys_dtype == DType::f32)
        cuda::launch<float>(problem, n_keys, n_tiles, sums, totals);
    else
        cuda::launch<__nv_bfloat16>(problem, n_keys, n_tiles, sums, totals);
    const bool launched = cuda::succeeded(cudaGetLastError(), "starting window_attention", error, error_size);
    const bool finished = cuda::succeeded(cudaDeviceSynchronize(), "running window_attention", error, error_size);
    cudaFree(sums);
    return launched && finished;
}
