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

std::vector<float> gram_matrix(std::span<const float> x, size_t width) {
    std::vector<float> products(width * width);
    kernels::linear({.dtype = kernels::DType::f32,
                     .n_rows = static_cast<int64_t>(width),
                     .in = static_cast<int64_t>(x.size() / width),
                     .out = static_cast<int64_t>(width),
                     .x = x.data(),
                     .weight = x.data(),
                     .y = products.data()});
    return products;
}

}  // namespace kvscope::engine
