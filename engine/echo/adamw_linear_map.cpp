#include "engine/echo/adamw_linear_map.h"

#include <algorithm>
#include <cmath>

#include "engine/device/tensor_functions.h"

namespace kvscope::engine {

TunedMap::TunedMap(const policies::Matrix& from) {
    weights_ = at::empty({from.n_rows, from.n_columns}, at::kFloat);
    std::copy(from.numbers.begin(), from.numbers.end(), weights_.data_ptr<float>());
    weights_ = weights_.t().contiguous();
    mean_ = at::zeros_like(weights_);
    square_ = at::zeros_like(weights_);
}

policies::Matrix TunedMap::matrix() const {
    const at::Tensor rows = weights_.t().contiguous();
    const float* data = rows.const_data_ptr<float>();
    return {static_cast<int>(rows.size(0)), static_cast<int>(rows.size(1)), {data, data + rows.numel()}};
}

void TunedMap::step(const at::Tensor& gradient, double rate, int64_t t) {
    constexpr double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0.01;
    const double correction1 = 1.0 - std::pow(beta1, static_cast<double>(t));
    const double correction2 = 1.0 - std::pow(beta2, static_cast<double>(t));
    float *w = weights_.data_ptr<float>(), *m = mean_.data_ptr<float>(), *v = square_.data_ptr<float>();
    const at::Tensor packed = gradient.contiguous();
    const float* g = packed.const_data_ptr<float>();
    for (int64_t i = 0; i < weights_.numel(); ++i) {
        m[i] = static_cast<float>(beta1 * m[i] + (1.0 - beta1) * g[i]);
        v[i] = static_cast<float>(beta2 * v[i] + (1.0 - beta2) * double{g[i]} * g[i]);
        const double change = m[i] / correction1 / (std::sqrt(v[i] / correction2) + epsilon);
        w[i] = static_cast<float>(w[i] - rate * (decay * w[i] + change));
    }
}

void TunedMap::add_parts(ResumableState::Parts& parts) {
    for (const at::Tensor& tensor : {weights_, mean_, square_}) {
        auto* data = static_cast<std::byte*>(tensor.data_ptr());
        parts.emplace_back(data, static_cast<size_t>(tensor.nbytes()));
    }
}

}  // namespace kvscope::engine
