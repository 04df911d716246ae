#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention_decode.h"
#include "kernels/attention_prefill.h"
#include "kernels/copy_rows.h"
#include "kernels/linear.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/row_errors.h"
#include "kernels/swiglu.h"
#include "kernels/weight_format.h"
#include "kernels/window_attention.h"

/// Exports of libkvscope_cuda.so. A function returns true, or writes the reason of a failure to `error` and returns
/// false. Increment abi_version when a signature or a shared struct changes.
///
/// A kernel takes the checked problem of its CPU counterpart, with arrays in device memory unless noted, and enqueues
/// its work on `stream`, a cudaStream_t of the current device. Host memory may be reused after the call. `workspace` is
/// device memory, aligned to 256 bytes, of the size that the `_workspace` function returns, and must stay valid until
/// the stream has finished the work. Each stream allocates 32 MiB of pinned memory and of device memory once.
namespace kvscope::kernels::cuda::abi {

inline constexpr int abi_version = 2;

using Version = int();
inline constexpr const char* version_symbol = "kvscope_cuda_version";

using Probe = bool(char* error, size_t error_size);
inline constexpr const char* probe_symbol = "kvscope_cuda_probe";

struct DeviceProperties {
    char name[256];
    size_t total_bytes;
    size_t free_bytes;
    int major, minor;  ///< compute capability
    int n_multiprocessors;
    double bytes_per_second;  ///< peak memory bandwidth computed from clock and bus width; 0 if unknown
};

using CountDevices = bool(int* count, char* error, size_t error_size);
inline constexpr const char* count_devices_symbol = "kvscope_cuda_count_devices";

using DescribeDevice = bool(int device, DeviceProperties* properties, char* error, size_t error_size);
inline constexpr const char* describe_device_symbol = "kvscope_cuda_describe_device";

using SetDevice = bool(int device, char* error, size_t error_size);
inline constexpr const char* set_device_symbol = "kvscope_cuda_set_device";

using Allocate = bool(void** device_memory, size_t bytes, char* error, size_t error_size);
inline constexpr const char* allocate_symbol = "kvscope_cuda_allocate";

using Release = void(void* device_memory);
inline constexpr const char* release_symbol = "kvscope_cuda_release";

/// Copies between host and device in either direction and waits until the copy is complete.
using Copy = bool(void* to, const void* from, size_t bytes, char* error, size_t error_size);
inline constexpr const char* copy_symbol = "kvscope_cuda_copy";

/// Waits for all work on the stream and reports its failures.
using Synchronize = bool(void* stream, char* error, size_t error_size);
inline constexpr const char* synchronize_symbol = "kvscope_cuda_synchronize";

/// A kernel for one problem in host memory, and the size of its workspace.
template <class Problem>
using Kernel = bool(const Problem* problem, void* workspace, size_t workspace_bytes, void* stream, char* error,
                    size_t error_size);
template <class Problem>
using KernelWorkspace = size_t(const Problem* problem);

template <class Problem>
using Kernels = bool(const Problem* problems, size_t n_problems, void* workspace, size_t workspace_bytes, void* stream,
                     char* error, size_t error_size);
template <class Problem>
using KernelsWorkspace = size_t(const Problem* problems, size_t n_problems);

/// Rows are in host memory. Refuses rows with `entries` and head sizes above 256. Rows aligned to 16 bytes are faster.
using AttentionDecode = bool(const DecodeRow* rows, size_t n_rows, int head_dim, DType dtype, float scale,
                             void* workspace, size_t workspace_bytes, void* stream, char* error, size_t error_size);
using AttentionDecodeWorkspace = size_t(const DecodeRow* rows, size_t n_rows, int head_dim, DType dtype);
inline constexpr const char* attention_decode_symbol = "kvscope_cuda_attention_decode";
inline constexpr const char* attention_decode_workspace_symbol = "kvscope_cuda_attention_decode_workspace";

/// All problems have one type and one head size, a multiple of 8 up to 256. q, k, v and strides are 16-byte aligned,
/// `out` is 4-byte aligned. out_token_stride is even. `v` is required even without `out`. column_sums must not overlap.
using AttentionPrefill = Kernels<PrefillAttention>;
using AttentionPrefillWorkspace = KernelsWorkspace<PrefillAttention>;
inline constexpr const char* attention_prefill_symbol = "kvscope_cuda_attention_prefill";
inline constexpr const char* attention_prefill_workspace_symbol = "kvscope_cuda_attention_prefill_workspace";

/// Requires non-zero scale and query_head_stride. window_attention_head_max needs the same workspace.
using RunWindowAttention = Kernel<WindowAttention>;
using RunWindowAttentionWorkspace = KernelWorkspace<WindowAttention>;
inline constexpr const char* window_attention_symbol = "kvscope_cuda_window_attention";
inline constexpr const char* window_peak_symbol = "kvscope_cuda_window_peak";
inline constexpr const char* window_attention_workspace_symbol = "kvscope_cuda_window_attention_workspace";

/// `in` is a multiple of 8; x, x_stride and the weight are aligned to 16 bytes. Needs no workspace. Reads the weight
/// once per 56 rows in bf16, per 32 rows in bf16 with f32 weights, and per 8 rows in f32.
using RunLinear = Kernel<Linear>;
inline constexpr const char* linear_symbol = "kvscope_cuda_linear";

/// `in` is a multiple of 8, and rows are aligned to 16 bytes. Needs no workspace.
using RunExpandWeights = Kernel<ExpandWeights>;
inline constexpr const char* expand_weights_symbol = "kvscope_cuda_expand_weights";

/// Gathers rows of a stored table as f32. `rows` are in host memory. Requires width % 8 = 0 and 16-byte alignment.
struct RowLookup {
    WeightFormat format = WeightFormat::f32;
    const void* table = nullptr;  ///< (n_table_rows, width)
    int64_t n_table_rows = 0;
    int64_t width = 0;
    const int32_t* rows = nullptr;  ///< (n_rows)
    int64_t n_rows = 0;
    float* out = nullptr;  ///< (n_rows, width)
};
using LookUpRows = Kernel<RowLookup>;
using LookUpRowsWorkspace = KernelWorkspace<RowLookup>;
inline constexpr const char* look_up_rows_symbol = "kvscope_cuda_look_up_rows";
inline constexpr const char* look_up_rows_workspace_symbol = "kvscope_cuda_look_up_rows_workspace";

// The following kernels need no workspace. row_errors writes `errors` in device memory.
inline constexpr const char* rms_norm_symbol = "kvscope_cuda_rms_norm";          ///< Kernel<RmsNorm>
inline constexpr const char* add_rms_norm_symbol = "kvscope_cuda_add_rms_norm";  ///< Kernel<AddRmsNorm>
inline constexpr const char* swiglu_symbol = "kvscope_cuda_swiglu";              ///< Kernel<SwiGlu>
inline constexpr const char* rope_symbol = "kvscope_cuda_rope";                  ///< Kernel<Rope>
inline constexpr const char* row_errors_symbol = "kvscope_cuda_row_errors";      ///< Kernel<RowErrors>

/// No copy may write memory that another copy uses. A copy within one array may move entries only to lower places.
using CopyRows = Kernels<RowCopy>;
using CopyRowsWorkspace = KernelsWorkspace<RowCopy>;
inline constexpr const char* copy_rows_symbol = "kvscope_cuda_copy_rows";
inline constexpr const char* copy_rows_workspace_symbol = "kvscope_cuda_copy_rows_workspace";

}  // namespace kvscope::kernels::cuda::abi
