#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention_decode.h"
#include "kernels/attention_prefill.h"
#include "kernels/window_attention.h"

/// What libkvscope_cuda.so exports. Functions return true on success and otherwise write the reason, a terminated
/// string, into `error`. Raise kVersion whenever a signature or a struct that crosses this border changes.
///
/// A kernel takes the problem of its CPU twin, checked as that one checks it, with its arrays in device memory unless
/// said otherwise, and enqueues its work on `stream`, a cudaStream_t of the current device. It neither allocates nor
/// waits, and what the host passes may go once it has returned. `workspace` is device memory of as many bytes as the
/// function of the same name and `_workspace` says, aligned to 256 bytes, and its contents have to stay until the
/// stream has come past the call: calls on one stream may share it.
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

/// The rows lie in host memory. Rows with `entries` are refused, and heads or key_dim above 256.
using AttentionDecode = bool(const DecodeRow* rows, size_t n_rows, int head_dim, DType dtype, float scale,
                             void* workspace, size_t workspace_bytes, void* stream, char* error, size_t error_size);
using AttentionDecodeWorkspace = size_t(const DecodeRow* rows, size_t n_rows, int head_dim, DType dtype);
inline constexpr const char* kAttentionDecodeSymbol = "kvscope_cuda_attention_decode";
inline constexpr const char* kAttentionDecodeWorkspaceSymbol = "kvscope_cuda_attention_decode_workspace";

/// Problems of one type and head size, which has to be a multiple of 8 up to 256; arrays and strides aligned to 16
/// bytes, out_token_stride even. The problems and their first_keys lie in host memory, all else on the device.
/// column_sums of different problems must not overlap.
using AttentionPrefill = bool(const PrefillAttention* problems, size_t n_problems, void* workspace,
                              size_t workspace_bytes, void* stream, char* error, size_t error_size);
using AttentionPrefillWorkspace = size_t(const PrefillAttention* problems, size_t n_problems);
inline constexpr const char* kAttentionPrefillSymbol = "kvscope_cuda_attention_prefill";
inline constexpr const char* kAttentionPrefillWorkspaceSymbol = "kvscope_cuda_attention_prefill_workspace";

/// The problem, in host memory, with scale and query_head_stride filled in. Keys of each KV head lie packed.
using RunWindowAttention = bool(const WindowAttention* problem, void* workspace, size_t workspace_bytes, void* stream,
                                char* error, size_t error_size);
using RunWindowAttentionWorkspace = size_t(const WindowAttention* problem);
inline constexpr const char* kWindowAttentionSymbol = "kvscope_cuda_window_attention";
inline constexpr const char* kWindowAttentionWorkspaceSymbol = "kvscope_cuda_window_attention_workspace";

/// window_peak of the same kind of problem, in as large a workspace.
inline constexpr const char* kWindowPeakSymbol = "kvscope_cuda_window_peak";

}  // namespace kvscope::kernels::cuda::abi
