#include "engine/model/product.h"

#include "engine/device/tensor_functions.h"
#include "kernels/linear.h"

namespace kvscope::engine {

at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    at::Tensor y = at::empty({x.size(0), weight.size(0)}, x.options());
    const auto type = x.scalar_type() == at::kFloat ? kernels::DType::f32 : kernels::DType::bf16;
    kernels::linear({.dtype = type,
                     .n_rows = x.size(0),
                     .in = weight.size(1),
                     .out = weight.size(0),
                     .x = x.const_data_ptr(),
                     .weight = weight.const_data_ptr(),
                     .bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr,
                     .y = y.data_ptr(),
                     .y_dtype = type});
    return y;
}

}  // namespace kvscope::engine
