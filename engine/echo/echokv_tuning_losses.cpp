#include "engine/echo/echokv_tuning_losses.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/device/tensor_functions.h"
#include "engine/model/operations.h"
#include "engine/model/product.h"

namespace kvscope::engine {
namespace {

/// Adds in order, because the rounding of a library's sum depends on the number of threads.
double sum_of_squares(const at::Tensor& x) {
    const at::Tensor packed = x.contiguous();
    const float* data = packed.const_data_ptr<float>();
    double sum = 0;
    for (int64_t i = 0; i < packed.numel(); ++i) sum += double{data[i]} * data[i];
    return sum;
}

double mean_square(const at::Tensor& x) {
    return x.numel() > 0 ? sum_of_squares(x) / static_cast<double>(x.numel()) : 0.0;
}

double divergence_of(const at::Tensor& log_p, const at::Tensor& log_q) {
    const float *p = log_p.const_data_ptr<float>(), *q = log_q.const_data_ptr<float>();
    double sum = 0;
    for (int64_t i = 0; i < log_p.numel(); ++i)
        if (std::isfinite(p[i])) sum += std::exp(double{p[i]}) * (double{p[i]} - q[i]);
    return sum;
}

struct RebuiltPart {
    at::Tensor own;    ///< (n, D)
    at::Tensor given;  ///< the map's inputs: the first layer's numbers and the layer's own stored numbers
    at::Tensor map;    ///< (outputs, inputs)
};

class LayerComparison {
 public:
    LayerComparison(const EchoLossSetup& setup, int layer, at::Tensor queries)
        : setup_(setup), layout_(setup.layout), layer_(layer), queries_(std::move(queries)) {}

    RebuiltPart part(const at::Tensor& first, const at::Tensor& own, const at::Tensor& map) const {
        return {own, at::cat({first, own.narrow(1, 0, layout_.local)}, 1).contiguous(), map};
    }

    EchoLayerLoss of_numbers(const RebuiltPart& keys, const RebuiltPart& values, bool with_gradients) const {
        EchoLayerLoss loss;
        loss.keys_gradient = add_numbers(keys, with_gradients, loss);
        loss.values_gradient = add_numbers(values, with_gradients, loss);
        return loss;
    }

    EchoLayerLoss of_outputs(const RebuiltPart& keys, const RebuiltPart& values, bool with_gradients) const {
        const at::Tensor expected = attended(keys.own, values.own);
        at::Tensor new_keys = rebuilt(keys), new_values = rebuilt(values);
        new_keys.set_requires_grad(with_gradients);
        new_values.set_requires_grad(with_gradients);
        const at::Tensor found = attended(new_keys, new_values), missed = found.detach() - expected;
        EchoLayerLoss loss{.loss = mean_square(missed), .scale = mean_square(expected)};
        if (!with_gradients) return loss;
        const auto of_rows = torch::autograd::grad({found}, {new_keys, new_values},
                                                   {missed * (2.0 / static_cast<double>(missed.numel()))});
        loss.keys_gradient = gradient(of_rows[0], keys.given);
        loss.values_gradient = gradient(of_rows[1], values.given);
        return loss;
    }

    EchoLayerLoss of_attention(const RebuiltPart& keys, bool with_gradients) const {
        const at::Tensor expected = log_attention(keys.own);
        at::Tensor new_keys = rebuilt(keys);
        new_keys.set_requires_grad(with_gradients);
        const at::Tensor found = log_attention(new_keys);
        const auto n_rows = static_cast<double>(expected.size(0));
        EchoLayerLoss loss{.loss = divergence_of(expected, found.detach()) / n_rows, .scale = 1.0};
        if (!with_gradients) return loss;
        const auto of_rows = torch::autograd::grad({found}, {new_keys}, {expected.exp() * (-1.0 / n_rows)});
        loss.keys_gradient = gradient(of_rows[0], keys.given);
        return loss;
    }

 private:
    int64_t n_skipped(int64_t n) const { return std::min(setup_.skipped, n); }
    int64_t n_outputs() const { return layout_.width() - layout_.local; }

    at::Tensor add_numbers(const RebuiltPart& part, bool with_gradients, EchoLayerLoss& loss) const {
        const int64_t skipped = n_skipped(part.own.size(0)), n = part.own.size(0) - skipped;
        const at::Tensor expected = part.own.narrow(0, skipped, n).narrow(1, layout_.local, n_outputs());
        const at::Tensor given = part.given.narrow(0, skipped, n);
        const at::Tensor missed = product(given, part.map) - expected;
        loss.loss += mean_square(missed);
        loss.scale += mean_square(expected);
        if (!with_gradients) return {};
        const at::Tensor of_rows = missed * (2.0 / static_cast<double>(missed.numel()));
        return product(of_rows.t().contiguous(), given.t().contiguous());
    }

    at::Tensor rebuilt(const RebuiltPart& part) const {
        at::Tensor all = part.own.clone();
        const int64_t skipped = n_skipped(all.size(0)), n = all.size(0) - skipped;
        all.narrow(0, skipped, n)
            .narrow(1, layout_.local, n_outputs())
            .copy_(product(part.given, part.map).narrow(0, skipped, n));
        return all;
    }

    /// Returns the gradient (outputs, inputs) of the map, given the gradient of the rebuilt rows.
    at::Tensor gradient(const at::Tensor& of_rows, const at::Tensor& given) const {
        at::Tensor outputs = of_rows.narrow(1, layout_.local, n_outputs()).clone();
        outputs.narrow(0, 0, n_skipped(outputs.size(0))).zero_();
        return product(outputs.t().contiguous(), given.t().contiguous());
    }

    std::vector<int64_t> first_keys() const {
        const int64_t window = setup_.model.config().sliding_window[static_cast<size_t>(layer_)];
        std::vector<int64_t> first;
        for (int64_t i = 0; window > 0 && i < queries_.size(0); ++i)
            first.push_back(std::max<int64_t>(i - window + 1, 0));
        return first;
    }

    at::Tensor by_head(const at::Tensor& rows) const {
        return rows.reshape({rows.size(0), layout_.n_kv_heads, layout_.head_dim}).transpose(0, 1).contiguous();
    }

    at::Tensor rotated(at::Tensor keys) const {
        std::vector<int64_t> positions(static_cast<size_t>(keys.size(0)));
        std::iota(positions.begin(), positions.end(), int64_t{0});
        differentiable_operations().rotate(keys, layout_.n_kv_heads, setup_.model.rotation(positions));
        return by_head(keys);
    }

    at::Tensor attended(const at::Tensor& keys, const at::Tensor& values) const {
        const std::vector<float> masses(static_cast<size_t>(queries_.size(0)), 1.0f);
        const std::vector<int64_t> first = first_keys();
        AttentionRead read{.shape = setup_.model.shape(),
                           .scale = setup_.model.attention_scale(),
                           .queries = queries_,
                           .keys = rotated(keys),
                           .values = by_head(values),
                           .masses = masses,
                           .first_keys = first,
                           .out = at::empty_like(queries_)};
        differentiable_operations().attend({&read, 1});
        return read.out;
    }

    at::Tensor unseen() const {
        const int64_t n = queries_.size(0);
        const std::vector<int64_t> first = first_keys();
        at::Tensor mask = at::full({n, n}, -std::numeric_limits<float>::infinity(), at::kFloat);
        for (int64_t i = 0; i < n; ++i) {
            float* row = mask.data_ptr<float>() + i * n;
            std::fill(row + (first.empty() ? 0 : first[static_cast<size_t>(i)]), row + i + 1, 0.0f);
        }
        return mask;
    }

    /// Returns the logarithm of each query's attention weights, (H n, n), for keys before RoPE.
    at::Tensor log_attention(const at::Tensor& keys) const {
        const auto shape = setup_.model.shape();
        const int64_t n = queries_.size(0), r = shape.group(), d = shape.head_dim;
        const at::Tensor all = rotated(keys), mask = unseen();
        std::vector<at::Tensor> heads;
        for (int64_t head = 0; head < shape.n_kv_heads; ++head) {
            const at::Tensor queries =
                queries_.narrow(1, head * r * d, r * d).reshape({n, r, d}).transpose(0, 1).reshape({r * n, d});
            const at::Tensor logits = differentiable_product(queries, all.select(0, head));
            heads.push_back(at::log_softmax(logits.reshape({r, n, n}) * setup_.model.attention_scale() + mask, -1)
                                .reshape({-1, n}));
        }
        return at::cat(heads, 0);
    }

    const EchoLossSetup& setup_;
    const policies::EchoLayout& layout_;
    int layer_;
    at::Tensor queries_;
};

}  // namespace

std::string_view echo_loss_name(EchoLoss loss) {
    constexpr std::string_view names[] = {"keys-values", "outputs", "qk-kl"};
    return names[static_cast<size_t>(loss)];
}

EchoLayerLoss compute_layer_loss(const EchoLossSetup& setup, int layer, const EchoSequence& first,
                                 const EchoSequence& own, const at::Tensor& keys_map, const at::Tensor& values_map,
                                 bool with_gradients) {
    const LayerComparison comparison(setup, layer, own.queries);
    const auto keys = comparison.part(first.keys, own.keys, keys_map);
    if (setup.loss == EchoLoss::qk_kl) return comparison.of_attention(keys, with_gradients);
    const auto values = comparison.part(first.values, own.values, values_map);
    return setup.loss == EchoLoss::outputs ? comparison.of_outputs(keys, values, with_gradients)
                                           : comparison.of_numbers(keys, values, with_gradients);
}

}  // namespace kvscope::engine
