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

/// What libkvscope_cuda.so exports. Functions return true on success and otherwise write the reason, a terminated
/// string, into `error`. Raise kVersion whenever a signature or a struct that crosses this border changes.
///
/// A kernel takes the problem of its CPU twin, checked as that one checks it, with its arrays in device memory unless
/// said otherwise, and enqueues its work on `stream`, a cudaStream_t of the current device. It allocates nothing
/// but, once for a stream, 32 MiB of pinned memory through which problems go there, as much of the device's, and a
/// stream for the copies, and waits only where that memory is full; what the host passes may go once it has returned.
/// `workspace` is device memory of as many bytes as the function of the same name and `_workspace` says, aligned to 256
/// bytes, and its contents have to stay until the stream has come past the call: calls on one stream may share it.
namespace kvscope::kernels::cuda::abi {

inline constexpr int kVersion = 2;

using Version = int();
inline constexpr const char* kVersionSymbol = "kvscope_cuda_version";

/// Whether there is a driver and a GPU that the library was compiled for.
using Probe = bool(char* error, size_t error_size);
inline constexpr const char* kProbeSymbol = "kvscope_cuda_probe";

// ---- devices and memory --------------------------------------------------------------------------------------------

struct DeviceProperties {
    char name[256];
    size_t total_bytes;
    size_t free_bytes;
    int major, minor;  ///< compute capability
    int n_multiprocessors;
    double bytes_per_second;  ///< what its memory can bring at most, from clock and width; 0 where these are unknown
};

using CountDevices = bool(int* count, char* error, size_t error_size);
inline constexpr const char* kCountDevicesSymbol = "kvscope_cuda_count_devices";

using DescribeDevice = bool(int device, DeviceProperties* properties, char* error, size_t error_size);
inline constexpr const char* kDescribeDeviceSymbol = "kvscope_cuda_describe_device";

/// Makes N of cuda:N the calling thread's device.
using SetDevice = bool(int device, char* error, size_t error_size);
inline constexpr const char* kSetDeviceSymbol = "kvscope_cuda_set_device";

using Allocate = bool(void** device_memory, size_t bytes, char* error, size_t error_size);
inline constexpr const char* kAllocateSymbol = "kvscope_cuda_allocate";

using Release = void(void* device_memory);
inline constexpr const char* kReleaseSymbol = "kvscope_cuda_release";

/// Between host and device, either way round, finished on return.
using Copy = bool(void* to, const void* from, size_t bytes, char* error, size_t error_size);
inline constexpr const char* kCopySymbol = "kvscope_cuda_copy";

/// Between host and device or within the device, in the stream's order. Host memory that is written, or that is pinned,
/// has to stay until the stream has come past it.
using CopyInOrder = bool(void* to, const void* from, size_t bytes, void* stream, char* error, size_t error_size);
inline constexpr const char* kCopyInOrderSymbol = "kvscope_cuda_copy_in_order";

/// Waits for all that is on the stream, and tells what failed there.
using Synchronize = bool(void* stream, char* error, size_t error_size);
inline constexpr const char* kSynchronizeSymbol = "kvscope_cuda_synchronize";

// ---- kernels -------------------------------------------------------------------------------------------------------

/// A kernel for one problem, which lies in host memory, and how much workspace it takes.
template <class Problem>
using Kernel = bool(const Problem* problem, void* workspace, size_t workspace_bytes, void* stream, char* error,
                    size_t error_size);
template <class Problem>
using KernelWorkspace = size_t(const Problem* problem);

/// A kernel for several problems at once.
template <class Problem>
using Kernels = bool(const Problem* problems, size_t n_problems, void* workspace, size_t workspace_bytes, void* stream,
                     char* error, size_t error_size);
template <class Problem>
using KernelsWorkspace = size_t(const Problem* problems, size_t n_problems);

/// The rows lie in host memory. Rows with `entries` are refused, and heads or key_dim above 256. Arrays may lie anyhow;
/// those of rows that are aligned to 16 bytes are read in such pieces.
using AttentionDecode = bool(const DecodeRow* rows, size_t n_rows, int head_dim, DType dtype, float scale,
                             void* workspace, size_t workspace_bytes, void* stream, char* error, size_t error_size);
using AttentionDecodeWorkspace = size_t(const DecodeRow* rows, size_t n_rows, int head_dim, DType dtype);
inline constexpr const char* kAttentionDecodeSymbol = "kvscope_cuda_attention_decode";
inline constexpr const char* kAttentionDecodeWorkspaceSymbol = "kvscope_cuda_attention_decode_workspace";

/// Problems of one type and head size, which has to be a multiple of 8 up to 256; q, k, v and their strides
/// aligned to 16 bytes, out to 4, out_token_stride even; v is read without `out`, too. first_keys lie in host memory,
/// all else on the device. column_sums of different problems must not overlap.
using AttentionPrefill = Kernels<PrefillAttention>;
using AttentionPrefillWorkspace = KernelsWorkspace<PrefillAttention>;
inline constexpr const char* kAttentionPrefillSymbol = "kvscope_cuda_attention_prefill";
inline constexpr const char* kAttentionPrefillWorkspaceSymbol = "kvscope_cuda_attention_prefill_workspace";

/// Scale and query_head_stride have to be filled in. window_peak takes as large a workspace.
using RunWindowAttention = Kernel<WindowAttention>;
using RunWindowAttentionWorkspace = KernelWorkspace<WindowAttention>;
inline constexpr const char* kWindowAttentionSymbol = "kvscope_cuda_window_attention";
inline constexpr const char* kWindowPeakSymbol = "kvscope_cuda_window_peak";
inline constexpr const char* kWindowAttentionWorkspaceSymbol = "kvscope_cuda_window_attention_workspace";

/// `in` a multiple of 8; x, x_stride and the weight aligned to 16 bytes. The weight is read once for up to 56 rows
/// (in f32: 8; of f32 for bf16: 32): for many more a library's product is the better one. Takes no workspace.
using RunLinear = Kernel<Linear>;
inline constexpr const char* kLinearSymbol = "kvscope_cuda_linear";

/// `in` a multiple of 8; the rows aligned to 16 bytes. Takes no workspace.
using RunExpandWeights = Kernel<ExpandWeights>;
inline constexpr const char* kExpandWeightsSymbol = "kvscope_cuda_expand_weights";

/// Rows of a stored table as f32: tokens to a residual stream. `rows` lie in host memory and are checked; `width` a
/// multiple of 8, the table aligned to 16 bytes.
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
inline constexpr const char* kLookUpRowsSymbol = "kvscope_cuda_look_up_rows";
inline constexpr const char* kLookUpRowsWorkspaceSymbol = "kvscope_cuda_look_up_rows_workspace";

/// residual += delta.
struct AddElements {
    int64_t n = 0;
    float* residual = nullptr;    ///< (n)
    const void* delta = nullptr;  ///< (n)
    DType delta_dtype = DType::f32;
};

/// None of these takes any workspace. row_errors writes to `errors` on the device.
inline constexpr const char* kRmsNormSymbol = "kvscope_cuda_rms_norm";         ///< Kernel<RmsNorm>
inline constexpr const char* kAddRmsNormSymbol = "kvscope_cuda_add_rms_norm";  ///< Kernel<AddRmsNorm>
inline constexpr const char* kAddSymbol = "kvscope_cuda_add";                  ///< Kernel<AddElements>
inline constexpr const char* kSwiGluSymbol = "kvscope_cuda_swiglu";            ///< Kernel<SwiGlu>
inline constexpr const char* kRopeSymbol = "kvscope_cuda_rope";                ///< Kernel<Rope>
inline constexpr const char* kRowErrorsSymbol = "kvscope_cuda_row_errors";     ///< Kernel<RowErrors>

/// No copy may write what another one reads or writes; one may move entries up within an array, by way of the
/// workspace.
using CopyRows = Kernels<RowCopy>;
using CopyRowsWorkspace = KernelsWorkspace<RowCopy>;
inline constexpr const char* kCopyRowsSymbol = "kvscope_cuda_copy_rows";
inline constexpr const char* kCopyRowsWorkspaceSymbol = "kvscope_cuda_copy_rows_workspace";

}  // namespace kvscope::kernels::cuda::abi
