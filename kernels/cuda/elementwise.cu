#include "kernels/cuda/abi.h"
#include "kernels/cuda/copy_plan.h"
#include "kernels/cuda/elementwise_tile.h"
#include "kernels/cuda/launch.h"

namespace kvscope::kernels::cuda {

namespace {

using Block = DeviceBlock<element_threads>;

template <class X, class Delta, class Out>
__global__ __launch_bounds__(element_threads, 1) void normalise(RmsNorm p, X* x, const Delta* delta) {
    __shared__ float reduced[element_threads / 32];
    Block block;
    Norm<Block, X, Delta, Out>{p, x, delta}.run(block, blockIdx.x, reduced);
}

template <class T>
__global__ __launch_bounds__(element_threads, 1) void activate_rows(SwiGlu p) {
    Block block;
    apply_swiglu<T>(block, blockIdx.x, p);
}

template <class T>
__global__ __launch_bounds__(element_threads, 1) void rotate_tokens(Rope p) {
    Block block;
    rotate_token_vectors<T>(block, blockIdx.x, p);
}

__global__ __launch_bounds__(element_threads, 1) void copy_parts(const RowCopyPart* parts, int64_t n_parts) {
    Block block;
    copy_rows_by_thread_block(block, parts[item_of_block(parts, n_parts, blockIdx.x, gridDim.x)], blockIdx.x);
}

template <class T>
__global__ __launch_bounds__(element_threads, 1) void vector_errors(RowErrors p) {
    Block block;
    compute_relative_errors<T>(block, blockIdx.x, p);
}

template <class Body>
void with_type(DType dtype, const Body& body) {
    if (dtype == DType::f32)
        body(float{});
    else
        body(bf16{});
}

bool is_ours(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

template <class Body>
bool launch(const char* name, int64_t n_blocks, const Call& call, const Body& body) {
    if (n_blocks > most_blocks) return call.refuse(name, "too many rows");
    if (n_blocks > 0) body(to_grid_size(n_blocks));
    return call.launched(name);
}

int64_t norm_blocks(int64_t n_vectors, int64_t dim) {
    return divide_rounding_up(n_vectors, vectors_of_norm_block(dim));
}

bool run(const RmsNorm& problem, const Call& call) {
    constexpr const char* kernel_name = "rms_norm";
    RmsNorm p = problem;
    if (!is_ours(p.x_dtype) || !is_ours(p.out_dtype)) return call.refuse(kernel_name, "expected f32 or bf16");
    if (p.x_stride == 0) p.x_stride = p.heads * p.dim;
    if (p.out_stride == 0) p.out_stride = p.heads * p.dim;
    return launch(kernel_name, norm_blocks(p.n_rows * p.heads, p.dim), call, [&](unsigned blocks) {
        with_type(p.x_dtype, [&]<class X>(X) {
            with_type(p.out_dtype, [&]<class Out>(Out) {
                X* x = static_cast<X*>(const_cast<void*>(p.x));  // written only if delta is added
                normalise<X, float, Out><<<blocks, element_threads, 0, call.queue()>>>(p, x, nullptr);
            });
        });
    });
}

bool run(const AddRmsNorm& problem, const Call& call) {
    constexpr const char* kernel_name = "add_rms_norm";
    const AddRmsNorm& a = problem;
    if (!is_ours(a.delta_dtype) || !is_ours(a.out_dtype)) return call.refuse(kernel_name, "expected f32 or bf16");
    const RmsNorm p{.n_rows = a.n_rows,
                    .dim = a.dim,
                    .eps = a.eps,
                    .x = a.residual,
                    .x_stride = a.dim,
                    .weight = a.weight,
                    .out = a.out,
                    .out_dtype = a.out_dtype,
                    .out_stride = a.dim};
    return launch(kernel_name, norm_blocks(a.n_rows, a.dim), call, [&](unsigned blocks) {
        with_type(a.delta_dtype, [&]<class Delta>(Delta) {
            with_type(a.out_dtype, [&]<class Out>(Out) {
                normalise<float, Delta, Out>
                    <<<blocks, element_threads, 0, call.queue()>>>(p, a.residual, static_cast<const Delta*>(a.delta));
            });
        });
    });
}

bool run(const SwiGlu& problem, const Call& call) {
    constexpr const char* kernel_name = "swiglu";
    SwiGlu p = problem;
    if (!is_ours(p.dtype)) return call.refuse(kernel_name, "expected f32 or bf16");
    if (p.in_stride == 0) p.in_stride = p.dim;
    if (p.out_stride == 0) p.out_stride = p.dim;
    return launch(kernel_name, p.n_rows * divide_rounding_up(p.dim, elements_of_block), call, [&](unsigned blocks) {
        with_type(p.dtype, [&]<class T>(T) { activate_rows<T><<<blocks, element_threads, 0, call.queue()>>>(p); });
    });
}

bool run(const Rope& problem, const Call& call) {
    constexpr const char* kernel_name = "rope";
    Rope p = problem;
    if (!is_ours(p.dtype)) return call.refuse(kernel_name, "expected f32 or bf16");
    if (p.head_dim % 2 != 0) return call.refuse(kernel_name, "the head size is odd");
    if (p.head_stride == 0) p.head_stride = p.head_dim;
    return launch(kernel_name, p.n_tokens, call, [&](unsigned blocks) {
        with_type(p.dtype, [&]<class T>(T) { rotate_tokens<T><<<blocks, element_threads, 0, call.queue()>>>(p); });
    });
}

bool run(const RowErrors& p, const Call& call) {
    constexpr const char* kernel_name = "row_errors";
    if (!is_ours(p.dtype)) return call.refuse(kernel_name, "expected f32 or bf16");
    return launch(
        kernel_name, divide_rounding_up(p.n_rows * p.n_heads, element_threads / 32), call, [&](unsigned blocks) {
            with_type(p.dtype, [&]<class T>(T) { vector_errors<T><<<blocks, element_threads, 0, call.queue()>>>(p); });
        });
}

bool run(std::span<const RowCopy> copies, const Call& call) {
    constexpr const char* kernel_name = "copy_rows";
    Staging staging = call.staging();
    Workspace workspace(call.workspace, staging.place());
    const CopyPlan plan(copies, workspace);
    if (plan.out.parts.empty()) return true;
    if (!call.upload(kernel_name, workspace, staging)) return false;
    const auto stage = [&](const CopyPlan::Stage& of, const RowCopyPart* parts) {
        return launch(kernel_name, of.n_blocks, call, [&](unsigned blocks) {
            copy_parts<<<blocks, element_threads, 0, call.queue()>>>(parts, static_cast<int64_t>(of.parts.size()));
        });
    };
    return stage(plan.out, plan.placed_out) && stage(plan.back, plan.placed_back);
}

template <class Problem>
bool guarded(const char* name, const Problem* problem, const Call& call) {
    return call.guarded(name, [&] { return run(*problem, call); });
}

}  // namespace

}  // namespace kvscope::kernels::cuda

using namespace kvscope::kernels;

#define KVSCOPE_CUDA_ELEMENTWISE(name, Problem)                                                                   \
    KVSCOPE_CUDA_EXPORT bool kvscope_cuda_##name(const Problem* problem, void* workspace, size_t workspace_bytes, \
                                                 void* stream, char* error, size_t error_size) {                  \
        return cuda::guarded(#name, problem, cuda::Call{workspace, workspace_bytes, stream, error, error_size});  \
    }
KVSCOPE_CUDA_ELEMENTWISE(rms_norm, RmsNorm)
KVSCOPE_CUDA_ELEMENTWISE(add_rms_norm, AddRmsNorm)
KVSCOPE_CUDA_ELEMENTWISE(swiglu, SwiGlu)
KVSCOPE_CUDA_ELEMENTWISE(rope, Rope)
KVSCOPE_CUDA_ELEMENTWISE(row_errors, RowErrors)

KVSCOPE_CUDA_EXPORT size_t kvscope_cuda_copy_rows_workspace(const RowCopy* copies, size_t n_copies) {
    cuda::Workspace workspace;
    const cuda::CopyPlan plan({copies, n_copies}, workspace);
    return workspace.bytes();
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_copy_rows(const RowCopy* copies, size_t n_copies, void* workspace,
                                                size_t workspace_bytes, void* stream, char* error, size_t error_size) {
    const cuda::Call call{workspace, workspace_bytes, stream, error, error_size};
    return call.guarded("copy_rows", [&] { return cuda::run(std::span(copies, n_copies), call); });
}
