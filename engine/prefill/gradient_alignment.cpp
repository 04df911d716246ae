#include "engine/prefill/gradient_alignment.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"
#include "engine/prefill/key_gradients.h"
#include "kernels/threads/parallel_with_scratch.h"

namespace kvscope::engine {
namespace {

struct CosineSums {
    std::array<double, 3> sums{};
    std::array<int64_t, 3> counts{};

    void add(size_t which, double product, double lengths) {
        if (!(lengths > 0)) return;
        sums[which] += std::clamp(product / lengths, -1.0, 1.0);
        ++counts[which];
    }
};

struct HeadQuery {
    const float *query = nullptr, *output = nullptr, *gradient = nullptr;
    const float *keys = nullptr, *values = nullptr;  ///< (n, d) of the visible entries
    int64_t n = 0;
    double scale = 0;  ///< logits are scale * (q . k)
};

/// For each visible entry, the logit and three products of r = v - o: with E, with itself, and with the preceding r.
struct EntryProducts {
    std::vector<double> logits, along, squares, with_previous;
};

void multiply(const HeadQuery& head, int64_t d, EntryProducts& products) {
    const auto n = static_cast<size_t>(head.n);
    for (auto* each : {&products.logits, &products.along, &products.squares, &products.with_previous}) each->resize(n);
    for (size_t j = 0; j < n; ++j) {
        const float* value = head.values + static_cast<int64_t>(j) * d;
        const float* before = j > 0 ? value - d : value;
        const float* key = head.keys + static_cast<int64_t>(j) * d;
        float logit = 0, along = 0, square = 0, with_previous = 0;
#pragma omp simd reduction(+ : logit, along, square, with_previous)
        for (int64_t c = 0; c < d; ++c) {
            const float r = value[c] - head.output[c];
            logit += head.query[c] * key[c];
            along += head.gradient[c] * r;
            square += r * r;
            with_previous += r * (before[c] - head.output[c]);
        }
        products.logits[j] = head.scale * double{logit};
        products.along[j] = double{along};
        products.squares[j] = double{square};
        products.with_previous[j] = double{with_previous};
    }
}

/// Sums the cosines over pairs of neighbors. Of the factors with alpha, only 1 - 2 alpha can change a cosine's sign.
CosineSums sums_of_query(const HeadQuery& head, int64_t d, EntryProducts& products) {
    CosineSums sums;
    double length = 0;
    for (int64_t c = 0; c < d; ++c) length += double{head.gradient[c]} * double{head.gradient[c]};
    length = std::sqrt(length);
    if (head.n < 2 || !(length > 0)) return sums;
    multiply(head, d, products);
    const double highest = *std::max_element(products.logits.begin(), products.logits.end());
    double total = 0;
    for (const double logit : products.logits) total += std::exp(logit - highest);
    const auto add_own = [&](size_t which, size_t j) {
        const double factor = 1 - 2 * std::exp(products.logits[j] - highest) / total;
        const double sign = factor > 0 ? 1.0 : -1.0;
        if (factor != 0) sums.add(which, sign * products.along[j], length * std::sqrt(products.squares[j]));
    };
    for (size_t j = 1; j < static_cast<size_t>(head.n); ++j) {
        add_own(0, j - 1);
        add_own(2, j);
        const double square = products.squares[j - 1] + 2 * products.with_previous[j] + products.squares[j];
        sums.add(1, -(products.along[j - 1] + products.along[j]), length * std::sqrt(std::max(square, 0.0)));
    }
    return sums;
}

void add_means(const Transformer& model, const LayerRead& read, const at::Tensor& gradient, GradientAlignment& means) {
    const auto shape = model.shape();
    const int64_t d = shape.head_dim, h = shape.n_heads, n = read.queries.size(0);
    std::vector<CosineSums> of_queries(static_cast<size_t>(h * n));
    kernels::parallel_with_scratch<EntryProducts>(h * n, [&](int64_t i, EntryProducts& products) {
        const int64_t head = i / n, query = i % n, at = (query * h + head) * d;
        const int64_t first = read.first_keys.empty() ? 0 : read.first_keys[static_cast<size_t>(query)];
        const int64_t entry = (head / shape.group() * n + first) * d;
        of_queries[static_cast<size_t>(i)] = sums_of_query({.query = read.queries.const_data_ptr<float>() + at,
                                                            .output = read.outputs.const_data_ptr<float>() + at,
                                                            .gradient = gradient.const_data_ptr<float>() + at,
                                                            .keys = read.keys.const_data_ptr<float>() + entry,
                                                            .values = read.values.const_data_ptr<float>() + entry,
                                                            .n = query + 1 - first,
                                                            .scale = double{model.attention_scale()}},
                                                           d, products);
    });
    for (int64_t head = 0; head < h; ++head) {
        CosineSums all;
        for (int64_t query = 0; query < n; ++query) {
            const CosineSums& one = of_queries[static_cast<size_t>(head * n + query)];
            for (size_t which = 0; which < 3; ++which) {
                all.sums[which] += one.sums[which];
                all.counts[which] += one.counts[which];
            }
        }
        size_t which = 0;
        for (auto* target : {&means.c11, &means.c12, &means.c22}) {
            const auto count = static_cast<double>(all.counts[which]);
            target->push_back(count > 0 ? static_cast<float>(all.sums[which] / count)
                                        : std::numeric_limits<float>::quiet_NaN());
            ++which;
        }
    }
}

HeldEntries nothing_held(const policies::ModelShape& shape, at::ScalarType type) {
    const at::Tensor none = at::empty({shape.n_kv_heads, 0, shape.head_dim}, type);
    return {none, none, {}, {}};
}

std::vector<at::Tensor> residuals_of(const Transformer& model, std::span<const int32_t> ids, Progress& progress) {
    const HeldEntries nothing = nothing_held(model.shape(), model.scalar_type());
    at::Tensor residual = model.embed(ids);
    std::vector<at::Tensor> residuals;
    for (int layer = 0; layer < model.shape().n_layers; ++layer) {
        progress.throw_if_stopped();
        residuals.push_back(residual.clone());
        compute_layer_for_chunk(model, layer, nothing, 0, residual);
        progress.advance(layer + 1);
    }
    residuals.push_back(residual);
    return residuals;
}

LayerRead detached(const LayerRead& read) {
    return {{},
            read.queries.detach().contiguous(),
            read.keys.detach().contiguous(),
            read.values.detach().contiguous(),
            read.first_keys,
            read.outputs.detach().contiguous()};
}

std::vector<float> turned_round(const std::vector<float>& means, int64_t n_layers) {
    const auto each = static_cast<int64_t>(means.size()) / n_layers;
    std::vector<float> turned;
    for (int64_t layer = n_layers; layer-- > 0;)
        turned.insert(turned.end(), means.begin() + layer * each, means.begin() + (layer + 1) * each);
    return turned;
}

}  // namespace

GradientAlignment gradient_alignment(const Transformer& given, std::span<const int32_t> ids, Progress& progress) {
    const Transformer& model = given.on_processor();
    ids = ids.first(std::min(ids.size(), static_cast<size_t>(alignment_tokens)));
    GradientAlignment means;
    if (ids.size() < 3) return means;
    const int n_layers = model.shape().n_layers;
    progress.begin("gradients", 2 * int64_t{n_layers}, "layers × passes");
    auto residuals = residuals_of(model, ids, progress);
    const Transformer differentiable = model.computed_with(differentiable_operations());
    const HeldEntries nothing = nothing_held(model.shape(), at::kFloat);
    at::Tensor gradient = gradient_of_loss(differentiable, ids, residuals.back(), progress);
    for (int layer = n_layers; layer-- > 0;) {
        progress.throw_if_stopped();
        residuals.pop_back();
        at::Tensor x = residuals.back().detach();
        x.set_requires_grad(true);
        at::Tensor residual = x, of_outputs;
        LayerRead read = compute_layer_for_chunk(differentiable, layer, nothing, 0, residual);
        {
            const auto found = torch::autograd::grad({residual}, {x, read.outputs}, {gradient});
            gradient = found[0];
            of_outputs = found[1].contiguous();
        }
        residual = at::Tensor();
        read = detached(read);
        add_means(model, read, of_outputs, means);
        progress.advance(2 * int64_t{n_layers} - layer);
    }
    for (auto* each : {&means.c11, &means.c12, &means.c22}) *each = turned_round(*each, n_layers);
    return means;
}

}  // namespace kvscope::engine
