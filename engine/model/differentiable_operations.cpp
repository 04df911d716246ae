#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/device/tensor_functions.h"
#include "engine/model/operations.h"
#include "engine/model/product.h"
#include "kernels/stored_number_products.h"
#include "kernels/threads/team.h"
#include "kernels/weight_format.h"

namespace kvscope::engine {
namespace {

constexpr int64_t rows_at_once = 4096;  // rows of a weight that are converted to f32 at a time

template <class Body>
void over_rows(int64_t n_rows, const Body& body) {
    constexpr int64_t together = 16;
    kernels::over_parts(kernels::threads(), n_rows, together, [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) body(row);
    });
}

at::Tensor transposed(const at::Tensor& matrix) { return matrix.to(at::kFloat).t().contiguous(); }

/// Returns rows [first, first + n) in f32. Large weights are converted in blocks, because a full f32 copy may not fit.
at::Tensor rows_of(const Matrix& weight, int64_t first, int64_t n) {
    at::Tensor numbers = weight.numbers(first, n);
    if (numbers.scalar_type() == at::kFloat) return numbers;
    at::Tensor converted = at::empty(numbers.sizes(), at::kFloat);
    kernels::expand_weights({.format = kernels::WeightFormat::bf16,
                             .n_rows = n,
                             .in = weight.columns(),
                             .rows = numbers.const_data_ptr(),
                             .out = converted.data_ptr()});
    return converted;
}

/// Calls body(first, n) for blocks of rows that are in one part of the weight, so that plain numbers are not copied.
template <class Body>
void over_blocks(const Matrix& weight, const Body& body) {
    int64_t first = 0;
    for (const Matrix::Part& part : weight.parts())
        for (const int64_t end = first + part.rows; first < end; first += std::min(rows_at_once, end - first))
            body(first, std::min(rows_at_once, end - first));
}

/// Returns y W, (n, columns), without a transposed copy of W. Sums over blocks of rows have smaller rounding errors.
at::Tensor times(const at::Tensor& y, const Matrix& weight) {
    constexpr int64_t columns_together = 64, rows_together = 128;
    const int64_t n = y.size(0), columns = weight.columns();
    at::Tensor sums = at::zeros({n, columns}, at::kFloat);
    const float* factors = y.const_data_ptr<float>();
    float* out = sums.data_ptr<float>();
    over_blocks(weight, [&](int64_t first, int64_t n_rows) {
        const at::Tensor numbers = weight.numbers(first, n_rows);
        const auto* data = static_cast<const char*>(numbers.const_data_ptr());
        const size_t bytes = numbers.element_size();
        const auto add = [&](int64_t begin, int64_t end, int) {
            const int64_t width = end - begin;
            std::vector<float> sum(static_cast<size_t>(n * width));
            for (int64_t row = 0; row < n_rows; row += rows_together) {
                std::fill(sum.begin(), sum.end(), 0.0f);
                kernels::add_weighted({.dtype = weight.type(),
                                       .data = data + static_cast<size_t>(row * columns + begin) * bytes,
                                       .stride = columns,
                                       .n = std::min(rows_together, n_rows - row),
                                       .width = static_cast<int>(width)},
                                      factors + first + row, weight.rows(), static_cast<int>(n), sum.data());
                for (int64_t i = 0; i < n; ++i)
                    for (int64_t c = 0; c < width; ++c)
                        out[i * columns + begin + c] += sum[static_cast<size_t>(i * width + c)];
            }
        };
        kernels::over_parts(kernels::threads(), columns, columns_together, add);
    });
    return sums;
}

/// Returns x W^T, (n, rows).
at::Tensor times_transposed(const at::Tensor& x, const Matrix& weight) {
    if (weight.type() == kernels::DType::f32) return engine::product(x, weight, {}, at::kFloat);
    std::vector<at::Tensor> parts;
    over_blocks(weight,
                [&](int64_t first, int64_t n) { parts.push_back(engine::product(x, rows_of(weight, first, n))); });
    return at::cat(parts, 1);
}

class WeightProduct : public torch::autograd::Function<WeightProduct> {
 public:
    static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const Matrix* weight) {
        context->saved_data["weight"] = static_cast<int64_t>(reinterpret_cast<intptr_t>(weight));
        return times_transposed(x.contiguous(), *weight);
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   const torch::autograd::variable_list& gradients) {
        const auto* weight =
            // NOLINTNEXTLINE(performance-no-int-to-ptr): the context stores numbers, but no pointers
            reinterpret_cast<const Matrix*>(static_cast<intptr_t>(context->saved_data["weight"].toInt()));
        return {times(gradients[0].contiguous(), *weight), at::Tensor()};
    }
};

/// Computes x W^T with gradients for both factors. libtorch's rounding depends on the number of threads.
class Product : public torch::autograd::Function<Product> {
 public:
    static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                              const at::Tensor& weight) {
        context->save_for_backward({x, weight});
        return engine::product(x.contiguous(), weight.contiguous());
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   const torch::autograd::variable_list& gradients) {
        const auto saved = context->get_saved_variables();
        const at::Tensor gradient = gradients[0].contiguous();
        at::Tensor of_x, of_weight;
        if (context->needs_input_grad(0)) of_x = engine::product(gradient, transposed(saved[1]));
        if (context->needs_input_grad(1)) of_weight = engine::product(transposed(gradient), transposed(saved[0]));
        return {of_x, of_weight};
    }
};

/// Softmax along the last dimension. The rounding of libtorch's derivative depends on the number of threads.
class Softmax : public torch::autograd::Function<Softmax> {
 public:
    static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
        at::Tensor y = at::softmax(x.contiguous(), -1);
        context->save_for_backward({y});
        return y;
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   const torch::autograd::variable_list& gradients) {
        const at::Tensor y = context->get_saved_variables()[0].contiguous(), gradient = gradients[0].contiguous();
        at::Tensor of_x = at::empty_like(y);
        const int64_t m = y.size(-1), n_rows = m > 0 ? y.numel() / m : 0;
        const float *weights = y.const_data_ptr<float>(), *given = gradient.const_data_ptr<float>();
        float* out = of_x.data_ptr<float>();
        over_rows(n_rows, [&](int64_t row) {
            const float *w = weights + row * m, *g = given + row * m;
            double mean = 0;
            for (int64_t i = 0; i < m; ++i) mean += double{w[i]} * g[i];
            for (int64_t i = 0; i < m; ++i) out[row * m + i] = static_cast<float>(w[i] * (g[i] - mean));
        });
        return {of_x};
    }
};

/// Computes silu(gate) * up for rows (gate, up). libtorch's silu rounds the ends of each thread's block differently.
class SwiGlu : public torch::autograd::Function<SwiGlu> {
 public:
    static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& gate_up) {
        const at::Tensor in = gate_up.contiguous();
        context->save_for_backward({in});
        const int64_t n = in.size(0), inner = in.size(1) / 2;
        at::Tensor out = at::empty({n, inner}, at::kFloat);
        const float* x = in.const_data_ptr<float>();
        float* y = out.data_ptr<float>();
        over_rows(n, [&](int64_t row) {
            for (int64_t i = 0; i < inner; ++i) {
                const float gate = x[row * 2 * inner + i];
                y[row * inner + i] = gate * sigmoid(gate) * x[row * 2 * inner + inner + i];
            }
        });
        return out;
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   const torch::autograd::variable_list& gradients) {
        const at::Tensor in = context->get_saved_variables()[0], gradient = gradients[0].contiguous();
        const int64_t n = in.size(0), inner = in.size(1) / 2;
        at::Tensor of_in = at::empty_like(in);
        const float *x = in.const_data_ptr<float>(), *given = gradient.const_data_ptr<float>();
        float* out = of_in.data_ptr<float>();
        over_rows(n, [&](int64_t row) {
            for (int64_t i = 0; i < inner; ++i) {
                const int64_t at = row * 2 * inner + i;
                const float gate = x[at], up = x[at + inner], g = given[row * inner + i], s = sigmoid(gate);
                out[at] = g * up * s * (1.0f + gate * (1.0f - s));
                out[at + inner] = g * gate * s;
            }
        });
        return {of_in};
    }

 private:
    static float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
};

at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, float eps) {
    return x * at::rsqrt(x.square().mean(-1, true) + eps) * weight;
}

/// Returns (n, m): 0 if the query sees the entry, minus infinity otherwise.
at::Tensor mask_of(const AttentionRead& read) {
    const int64_t n = read.queries.size(0), m = static_cast<int64_t>(read.masses.size());
    at::Tensor mask = at::full({n, m}, -std::numeric_limits<float>::infinity(), at::kFloat);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t first = read.first_keys.empty() ? 0 : read.first_keys[static_cast<size_t>(i)];
        std::fill(mask.data_ptr<float>() + i * m + first, mask.data_ptr<float>() + i * m + m - n + i + 1, 0.0f);
    }
    return mask;
}

at::Tensor attended(const AttentionRead& read, int head, const at::Tensor& mask, const at::Tensor& masses) {
    const int64_t r = read.shape.group(), n = read.queries.size(0), m = masses.size(0), d = read.shape.head_dim;
    const at::Tensor queries = read.queries.narrow(1, head * r * d, r * d).reshape({n, r, d}).transpose(0, 1);
    const at::Tensor keys = read.keys.select(0, head).narrow(0, 0, m);
    const at::Tensor values = read.values.select(0, head).narrow(0, 0, m);
    const at::Tensor logits = Product::apply(queries.reshape({r * n, d}), keys).reshape({r, n, m}) * read.scale;
    const at::Tensor weights = Softmax::apply(logits + (mask + masses.log()));
    if (!read.column_sums.empty()) {
        const at::Tensor sums = weights.detach().to(at::kDouble).sum(1).contiguous();
        for (int64_t i = 0; i < r * m; ++i)
            read.column_sums[static_cast<size_t>(head * r * m + i)] += sums.const_data_ptr<double>()[i];
    }
    return Product::apply((weights / masses).reshape({r * n, m}), values.t()).reshape({r, n, d});
}

class DifferentiableOperations final : public Operations {
 public:
    at::ScalarType activations(kernels::DType) const override { return at::kFloat; }

    at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, float eps, kernels::DType) const override {
        return normed(x, weight, eps);
    }

    void norm_heads(at::Tensor& x, int64_t first, int64_t heads, const at::Tensor& weight, float eps) const override {
        const int64_t n = x.size(0), d = weight.size(0), end = first + heads * d;
        const at::Tensor vectors = x.narrow(1, first, heads * d).reshape({n, heads, d});
        x = at::cat({x.narrow(1, 0, first), normed(vectors, weight, eps).reshape({n, heads * d}),
                     x.narrow(1, end, x.size(1) - end)},
                    1);
    }

    at::Tensor add_norm(at::Tensor& residual, const at::Tensor& delta, const at::Tensor& weight,
                        float eps) const override {
        residual = residual + delta;
        return normed(residual, weight, eps);
    }

    void add(at::Tensor& residual, const at::Tensor& delta) const override { residual = residual + delta; }

    at::Tensor product(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias) const override {
        const at::Tensor y = WeightProduct::apply(x, &weight);
        return bias.defined() ? y + bias : y;
    }

    at::Tensor logits(const at::Tensor& x, const Matrix& weight) const override {
        return WeightProduct::apply(x, &weight);
    }

    void rotate(at::Tensor& x, int64_t heads, const Rotation& rotation) const override {
        const int64_t n = x.size(0), half = rotation.cosines.size(1), width = heads * 2 * half;
        const at::Tensor vectors = x.narrow(1, 0, width).reshape({n, heads, 2, half});
        const at::Tensor a = vectors.select(2, 0), b = vectors.select(2, 1);
        const at::Tensor cosines = rotation.cosines.unsqueeze(1), sines = rotation.sines.unsqueeze(1);
        const at::Tensor turned = at::cat({a * cosines - b * sines, b * cosines + a * sines}, 2).reshape({n, width});
        x = at::cat({turned, x.narrow(1, width, x.size(1) - width)}, 1);
    }

    at::Tensor swiglu(const at::Tensor& gate_up) const override { return SwiGlu::apply(gate_up); }

    void attend(std::span<AttentionRead> reads) const override {
        for (AttentionRead& read : reads) {
            const int64_t n = read.queries.size(0);
            const at::Tensor mask = mask_of(read);
            at::Tensor masses = at::empty({mask.size(1)}, at::kFloat);
            std::copy(read.masses.begin(), read.masses.end(), masses.data_ptr<float>());
            std::vector<at::Tensor> outputs;
            for (int head = 0; head < read.shape.n_kv_heads; ++head)
                outputs.push_back(attended(read, head, mask, masses));
            read.out = at::cat(outputs, 0).transpose(0, 1).reshape({n, -1});
        }
    }
};

}  // namespace

at::Tensor differentiable_product(const at::Tensor& x, const at::Tensor& y) { return Product::apply(x, y); }

const Operations& differentiable_operations() {
    static const DifferentiableOperations operations;
    return operations;
}

}  // namespace kvscope::engine
