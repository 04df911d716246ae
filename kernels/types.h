#pragma once

#include <cstddef>

namespace kvscope::kernels {

/// Element types of the arrays that kernels read and write. f16 exists for checkpoints and is converted on loading.
enum class DType { f32, bf16, f16 };

/// Where a kernel's arrays lie and where it runs.
enum class Device { cpu, cuda };

/// Bytes of one element.
constexpr size_t size_of(DType dtype) { return dtype == DType::f32 ? 4 : 2; }

constexpr const char* name_of(DType dtype) {
    return dtype == DType::f32 ? "f32" : dtype == DType::bf16 ? "bf16" : "f16";
}

constexpr const char* name_of(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

}  // namespace kvscope::kernels
