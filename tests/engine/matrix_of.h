#pragma once

#include "engine/model/matrix.h"

namespace kvscope::engine::testing {

/// Returns a matrix with the numbers (rows, columns), in f32 or bf16.
inline Matrix matrix_of(const at::Tensor& numbers) {
    const auto type = numbers.scalar_type() == at::kBFloat16 ? kernels::DType::bf16 : kernels::DType::f32;
    Matrix matrix(numbers.size(1), type);
    matrix.add_rows(kernels::weight_format_of(type), numbers.size(0)).copy_(numbers);
    return matrix;
}

}  // namespace kvscope::engine::testing
