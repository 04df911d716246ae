#include "kernels/cuda/abi.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/linear_launch.h"

namespace kvscope::kernels::cuda {

namespace {

constexpr int64_t most_elements = int64_t{1} << 30;
constexpr const char* linear_name = "linear";
constexpr const char* expand_name = "expand_weights";
constexpr const char* lookup_name = "look_up_rows";
using Block = DeviceBlock<linear_threads>;

template <WeightFormat format, class T>
__global__ __launch_bounds__(linear_threads) void expand_rows(ExpandProblem p) {
    Block block;
    expand<format, T>(block, blockIdx.x, p);
}

const char* reason_against(const Linear& p, WeightFormat format) {
    if (p.dtype == DType::f16 || p.y_dtype == DType::f16) return "expected f32 or bf16, found f16";
    if (p.n_rows < 0 || p.in <= 0 || p.out <= 0) return "sizes must be positive";
    if (p.n_rows > 0 && (!p.x || !p.weight || !p.y)) return "an array is null";
    if (p.in % block_size_of_format(format).n != 0 || p.in % weights_at_once != 0)
        return "the row length is not a multiple of the format's block size, or of 8";
    const bool aligned =
        p.dtype == DType::f32 ? is_aligned<float>(p.x, p.x_stride, p.in) : is_aligned<bf16>(p.x, p.x_stride, p.in);
    if (!aligned || reinterpret_cast<uintptr_t>(p.weight) % 16 != 0)
        return "x, its stride or the weight is not aligned to 16 bytes";
    if (divide_rounding_up(p.n_rows, 8) > 65535 || (p.dtype == DType::bf16 && divide_rounding_up(p.out, 16) > 65535))
        return "too many rows or outputs";
    // The bf16 kernel uses 32-bit offsets.
    if (p.dtype == DType::bf16 && (p.in > most_elements || p.n_rows * (p.x_stride ? p.x_stride : p.in) > most_elements))
        return "the rows of x have too many elements";
    return nullptr;
}

bool run_linear(const Linear& p, const Call& call) {
    const WeightFormat format = p.format.value_or(weight_format_of(p.dtype));
    if (const char* reason = reason_against(p, format)) return call.refuse(linear_name, reason);
    if (p.n_rows == 0) return true;
    const LinearProblem problem{p.n_rows,
                                p.in,
                                p.out,
                                p.x,
                                p.x_stride ? p.x_stride : p.in,
                                static_cast<const uint8_t*>(p.weight),
                                row_bytes(format, p.in),
                                p.bias,
                                p.y,
                                p.y_dtype,
                                p.y_stride ? p.y_stride : p.out};
    if (p.dtype == DType::f32)
        launch_linear_with_f32_inputs(format, problem, call.queue());
    else
        launch_linear_with_bf16_inputs(format, problem, call.queue());
    return call.launched(linear_name);
}

bool run_expand(const char* name, WeightFormat format, DType dtype, const ExpandProblem& p, const Call& call) {
    if (dtype == DType::f16) return call.refuse(name, "expected f32 or bf16, found f16");
    if (p.in <= 0 || p.in % block_size_of_format(format).n != 0 || p.in % weights_at_once != 0)
        return call.refuse(name, "the row length is not a multiple of the format's block size, or of 8");
    if (p.n_rows == 0) return true;
    if (!p.table || !p.out || reinterpret_cast<uintptr_t>(p.table) % 16 != 0)
        return call.refuse(name, "an array is null, or the table is not aligned to 16 bytes");
    const int64_t n_blocks = divide_rounding_up(p.n_rows * (p.in / weights_at_once), linear_threads);
    if (n_blocks > most_blocks) return call.refuse(name, "too many rows");
    with_format(format, [&]<WeightFormat f>() {
        if (dtype == DType::f32)
            expand_rows<f, float><<<to_grid_size(n_blocks), linear_threads, 0, call.queue()>>>(p);
        else
            expand_rows<f, bf16><<<to_grid_size(n_blocks), linear_threads, 0, call.queue()>>>(p);
    });
    return call.launched(name);
}

bool run_lookup(const abi::RowLookup& p, const Call& call) {
    for (int64_t i = 0; i < p.n_rows; ++i)
        if (p.rows[i] < 0 || p.rows[i] >= p.n_table_rows)
            return call.refuse(lookup_name, "a row index is outside the table");
    Staging staging = call.staging();
    Workspace workspace(call.workspace, staging.place());
    const int32_t* rows = workspace.place(std::span<const int32_t>(p.rows, static_cast<size_t>(p.n_rows)));
    if (!call.upload(lookup_name, workspace, staging)) return false;
    return run_expand(
        lookup_name, p.format, DType::f32,
        {p.n_rows, p.width, static_cast<const uint8_t*>(p.table), row_bytes(p.format, p.width), rows, p.out}, call);
}

}  // namespace

}  // namespace kvscope::kernels::cuda

using namespace kvscope::kernels;

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_linear(const Linear* problem, void* workspace, size_t workspace_bytes,
                                             void* stream, char* error, size_t error_size) {
    const cuda::Call call{workspace, workspace_bytes, stream, error, error_size};
    return call.guarded(cuda::linear_name, [&] { return cuda::run_linear(*problem, call); });
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_expand_weights(const ExpandWeights* problem, void* workspace,
                                                     size_t workspace_bytes, void* stream, char* error,
                                                     size_t error_size) {
    const cuda::Call call{workspace, workspace_bytes, stream, error, error_size};
    const ExpandWeights& p = *problem;
    return call.guarded(cuda::expand_name, [&] {
        return cuda::run_expand(
            cuda::expand_name, p.format, p.dtype,
            {p.n_rows, p.in, static_cast<const uint8_t*>(p.rows), row_bytes(p.format, p.in), nullptr, p.out}, call);
    });
}

KVSCOPE_CUDA_EXPORT size_t kvscope_cuda_look_up_rows_workspace(const cuda::abi::RowLookup* problem) {
    cuda::Workspace workspace;
    workspace.place<int32_t>(static_cast<size_t>(problem->n_rows));
    return workspace.bytes();
}

KVSCOPE_CUDA_EXPORT bool kvscope_cuda_look_up_rows(const cuda::abi::RowLookup* problem, void* workspace,
                                                   size_t workspace_bytes, void* stream, char* error,
                                                   size_t error_size) {
    const cuda::Call call{workspace, workspace_bytes, stream, error, error_size};
    return call.guarded(cuda::lookup_name, [&] { return cuda::run_lookup(*problem, call); });
}
