#pragma once

#include <cstddef>

namespace kvscope::kernels {

/// Element type of an array. Checkpoints may be f16, which is converted on loading.
enum class DType { f32, bf16, f16 };

[[nodiscard]] constexpr size_t size_of(DType dtype) { return dtype == DType::f32 ? 4 : 2; }

[[nodiscard]] constexpr const char* name_of(DType dtype) {
    return dtype == DType::f32 ? "f32" : dtype == DType::bf16 ? "bf16" : "f16";
}

}  // namespace kvscope::kernels
