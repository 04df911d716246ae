#pragma once

#include <cstddef>

namespace kvscope::kernels {

enum class DType { f32, bf16, f16 };
enum class Device { cpu, cuda };

constexpr size_t size_of(DType dtype) { return dtype == DType::f32 ? 4 : 2; }

}  // namespace kvscope::kernels
