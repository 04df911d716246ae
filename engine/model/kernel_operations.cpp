
#include <stdexcept>
#include <vector>

#include "engine/device/tensor_functions.h"
#include "engine/model/operations.h"

namespace kvscope::engine {
namespace {

kernels::DType type_of(const at::Tensor& x) {
    return x.scalar_type() == at::kBFloat16 ? kernels::DType::bf16 : kernels::DType::f32;
}

class KernelOperations final : public Operations {
 public:
    explicit KernelOperations(const kernels::Backend& backend) : backend_(backend) {}

    at::ScalarType activations(kernels::DType model) const override {
        return model == kernels::DType::bf16 ? at::kBFloat16 : at::kFloat;
    }

    at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, float eps, kernels::DType model) const override {
        at::Tensor out = at::empty(x.sizes(), x.options().dtype(activations(model)));
        backend_.rms_norm({.n_rows = x.size(0),
                           .dim = x.size(1),
                           .eps = eps,
                           .x = x.const_data_ptr(),
                           .weight = weight.const_data_ptr<float>(),
                           .out = out.data_ptr(),
                           .out_dtype = model});
        return out;
    }

    void norm_heads(at::Tensor& x, int64_t first, int64_t heads, const at::Tensor& weight, float eps) const override {
        auto* data = static_cast<char*>(x.data_ptr()) + static_cast<size_t>(first) * x.element_size();
        backend_.rms_norm({.n_rows = x.size(0),
                           .heads = heads,
                           .dim = weight.size(0),
                           .eps = eps,
                           .x = data,
                           .x_dtype = type_of(x),
                           .x_stride = x.stride(0),
                           .weight = weight.const_data_ptr<float>(),
                           .out = data,
                           .out_dtype = type_of(x),
                           .out_stride = x.stride(0)});
    }

    at::Tensor add_norm(at::Tensor& residual, const at::Tensor& delta, const at::Tensor& weight,
                        float eps) const override {
        at::Tensor out = at::empty_like(delta);
        backend_.add_rms_norm({.n_rows = residual.size(0),
                               .dim = residual.size(1),
                               .eps = eps,
                               .residual = residual.data_ptr<float>(),
                               .delta = delta.const_data_ptr(),
                               .delta_dtype = type_of(delta),
                               .weight = weight.const_data_ptr<float>(),
                               .out = out.data_ptr(),
                               .out_dtype = type_of(out)});
        return out;
    }

    void add(at::Tensor& residual, const at::Tensor& delta) const override { residual.add_(delta); }

    at::Tensor product(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias) const override {
        return engine::product(x, weight, bias, x.scalar_type());
    }

    at::Tensor logits(const at::Tensor& x, const Matrix& weight) const override {
        return engine::product(x, weight, {}, at::kFloat);
    }

    void rotate(at::Tensor& x, int64_t heads, const Rotation& rotation) const override {
        backend_.rope(rope_of(rotation, type_of(x), heads, x.data_ptr(), x.stride(0)));
    }

    at::Tensor swiglu(const at::Tensor& gate_up) const override {
        const int64_t inner = gate_up.size(1) / 2;
        at::Tensor out = at::empty({gate_up.size(0), inner}, gate_up.options());
        const auto* gate = static_cast<const char*>(gate_up.const_data_ptr());
        backend_.swiglu({.dtype = type_of(gate_up),
                         .n_rows = gate_up.size(0),
                         .dim = inner,
                         .gate = gate,
                         .up = gate + static_cast<size_t>(inner) * gate_up.element_size(),
                         .in_stride = 2 * inner,
                         .out = out.data_ptr()});
        return out;
    }

    void attend(std::span<AttentionRead> reads) const override {
        if (!backend_.is_processor()) throw std::logic_error("attention to entries with masses requires the processor");
        std::vector<kernels::PrefillAttention> problems;
        for (AttentionRead& read : reads) {
            const auto m = static_cast<int64_t>(read.masses.size());
            problems.push_back({.dtype = type_of(read.queries),
                                .n_heads = read.shape.n_heads,
                                .n_kv_heads = read.shape.n_kv_heads,
                                .head_dim = read.shape.head_dim,
                                .scale = read.scale,
                                .q_begin = m - read.queries.size(0),
                                .n_queries = read.queries.size(0),
                                .first_keys = read.first_keys.empty() ? nullptr : read.first_keys.data(),
                                .q = read.queries.const_data_ptr(),
                                .q_token_stride = read.queries.stride(0),
                                .k = read.keys.const_data_ptr(),
                                .v = read.values.const_data_ptr(),
                                .kv_head_stride = read.values.stride(0),
                                .cardinality = read.masses.data(),
                                .out = read.out.data_ptr(),
                                .out_token_stride = read.out.stride(0),
                                .column_sums = read.column_sums.empty() ? nullptr : read.column_sums.data(),
                                .column_stride = m});
        }
        backend_.attention_prefill(problems);
    }

 private:
    const kernels::Backend& backend_;
};

}  // namespace

const Operations& kernel_operations() {
    static const KernelOperations operations(kernels::cpu_backend());
    return operations;
}

std::shared_ptr<const Operations> kernel_operations(const kernels::Backend& backend) {
    return std::make_shared<const KernelOperations>(backend);
}

}  // namespace kvscope::engine
