#pragma once

#include <cstddef>

/// The part of CUDA's runtime that kernels/cuda/staging.cu calls, for a test without a card. Defined in
/// cuda_staging_test.cpp.
using cudaStream_t = struct FakeStream*;
using cudaEvent_t = struct FakeEvent*;

enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1 };
inline constexpr unsigned cudaEventDisableTiming = 2, cudaStreamNonBlocking = 1, cudaHostAllocDefault = 0;

cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetLastError();
[[nodiscard]] const char* cudaGetErrorString(cudaError_t error);
[[nodiscard]] const char* cudaGetErrorName(cudaError_t error);
[[nodiscard]] cudaError_t cudaMalloc(void** memory, size_t bytes);
[[nodiscard]] cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags);
[[nodiscard]] cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                          cudaStream_t stream);
[[nodiscard]] cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
[[nodiscard]] cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event);
[[nodiscard]] cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
[[nodiscard]] cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
[[nodiscard]] cudaError_t cudaEventSynchronize(cudaEvent_t event);
