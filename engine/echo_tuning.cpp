#include "engine/echo_tuning.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>

#include "engine/error.h"
#include "engine/model/operations.h"
#include "engine/model/product.h"
#include "engine/prefill.h"

namespace kvscope::engine {
namespace {

using policies::EchoLayout;
using policies::EchoMaps;

/// A map, turned round for products, (outputs, inputs), with AdamW's moments.
struct TunedMap {
    at::Tensor map, mean, square;

    explicit TunedMap(const policies::Matrix& from) {
        map = at::empty({from.n_rows, from.n_columns}, at::kFloat);
        std::copy(from.numbers.begin(), from.numbers.end(), map.data_ptr<float>());
        map = map.t().contiguous();
        mean = at::zeros_like(map);
        square = at::zeros_like(map);
    }

    policies::Matrix matrix() const {
        const at::Tensor rows = map.t().contiguous();
        const float* data = rows.const_data_ptr<float>();
        return {static_cast<int>(rows.size(0)), static_cast<int>(rows.size(1)), {data, data + rows.numel()}};
    }

    /// AdamW (Loshchilov and Hutter, 2019, algorithm 2) at step t, counted from 1.
    void step(const at::Tensor& gradient, double rate, int64_t t) {
        constexpr double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0.01;
        const double correction1 = 1.0 - std::pow(beta1, static_cast<double>(t));
        const double correction2 = 1.0 - std::pow(beta2, static_cast<double>(t));
        float *w = map.data_ptr<float>(), *m = mean.data_ptr<float>(), *v = square.data_ptr<float>();
        const at::Tensor packed = gradient.contiguous();
        const float* g = packed.const_data_ptr<float>();
        for (int64_t i = 0; i < map.numel(); ++i) {
            m[i] = static_cast<float>(beta1 * m[i] + (1.0 - beta1) * g[i]);
            v[i] = static_cast<float>(beta2 * v[i] + (1.0 - beta2) * double{g[i]} * g[i]);
            const double change = m[i] / correction1 / (std::sqrt(v[i] / correction2) + epsilon);
            w[i] = static_cast<float>(w[i] - rate * (decay * w[i] + change));
        }
    }
};

struct TunedLayer {
    TunedMap keys, values;
};

/// What a sequence's layer has, each f32: keys before RoPE and values (n, D), rotated queries (n, H d).
struct ObservedSequence {
    at::Tensor keys, values, queries;
};

at::Tensor rows_of(const policies::EntriesView& view, const EchoLayout& layout, int64_t n) {
    at::Tensor rows = at::empty({n, layout.width()}, at::kFloat);
    for (int64_t token = 0; token < n; ++token)
        for (int head = 0; head < layout.n_kv_heads; ++head)
            policies::read_entry(view, head, token, layout.head_dim,
                                 rows.data_ptr<float>() + token * layout.width() + head * layout.head_dim);
    return rows;
}

/// Sums over the layers of a sequence.
struct AttentionLoss {
    double missed = 0, whole = 0;
    double relative() const { return whole > 0 ? std::sqrt(missed / whole) : 0.0; }
};

/// Reads sequences and compares attention with true and with rebuilt keys and values.
class EchoComparison {
 public:
    EchoComparison(const Model& model, const EchoMaps& maps, const EchoTuningOptions& options)
        : model_(model.transformer()), layout_(maps.layout), options_(options) {
        for (const auto& [layer, of_layer] : maps.layers)
            weights_.emplace(layer, TunedLayer{TunedMap(of_layer.keys), TunedMap(of_layer.values)});
    }

    /// @param rate of this step's change; nullopt: nothing is changed
    AttentionLoss read(std::span<const int32_t> ids, std::optional<double> rate, int64_t t, const Progress& progress) {
        AttentionLoss loss;
        PrefillRequest request;
        request.ids = ids;
        request.keep_cache = false;
        request.needs.keys_before_rope = true;
        request.needs.window_queries = static_cast<int>(ids.size());
        ObservedSequence first;
        WithoutSteps inner(progress);
        prefill(
            model_, request,
            [&](PrefillLayer& layer) {
                ObservedSequence observed = observe(layer.prompt, static_cast<int64_t>(ids.size()));
                if (layout_.is_first(layer.layer))
                    first = std::move(observed);
                else if (layout_.is_rebuilt(layer.layer))
                    compare(layer.layer, first, observed, rate, t, loss);
            },
            inner);
        return loss;
    }

    void write(EchoMaps& maps) const {
        for (const auto& [layer, of_layer] : weights_)
            maps.layers[layer] = {of_layer.keys.matrix(), of_layer.values.matrix()};
    }

 private:
    ObservedSequence observe(const policies::LayerObservations& from, int64_t n) const {
        const auto& shape = from.shape;
        at::Tensor queries = at::empty({shape.n_heads, n, shape.head_dim}, at::kFloat);
        std::copy(from.window_queries.begin(), from.window_queries.end(), queries.data_ptr<float>());
        return {rows_of(from.keys_before_rope, layout_, n), rows_of(from.values, layout_, n),
                queries.transpose(0, 1).reshape({n, -1}).contiguous()};
    }

    at::Tensor attended(int layer, const at::Tensor& queries, at::Tensor keys, const at::Tensor& values) const {
        const int64_t n = queries.size(0), heads = layout_.n_kv_heads;
        std::vector<int64_t> positions(static_cast<size_t>(n));
        std::iota(positions.begin(), positions.end(), int64_t{0});
        const int64_t window = model_.config().sliding_window[static_cast<size_t>(layer)];
        std::vector<int64_t> first_keys;
        for (int64_t i = 0; window > 0 && i < n; ++i) first_keys.push_back(std::max<int64_t>(i - window + 1, 0));
        const auto& operations = differentiable_operations();
        operations.rotate(keys, heads, model_.rotation(positions));
        const auto by_head = [&](const at::Tensor& rows) {
            return rows.reshape({n, heads, layout_.head_dim}).transpose(0, 1).contiguous();
        };
        const std::vector<float> masses(static_cast<size_t>(n), 1.0f);
        AttentionRead read{.shape = model_.shape(),
                           .scale = model_.attention_scale(),
                           .queries = queries,
                           .keys = by_head(keys),
                           .values = by_head(values),
                           .masses = masses,
                           .first_keys = first_keys,
                           .out = at::empty_like(queries)};
        operations.attend({&read, 1});
        return read.out;
    }

    /// What a map is given: the first layer's numbers and the own first ones.
    at::Tensor inputs(const at::Tensor& first, const at::Tensor& own) const {
        return at::cat({first, own.narrow(1, 0, layout_.local)}, 1).contiguous();
    }

    at::Tensor rebuilt(const at::Tensor& given, const at::Tensor& own, const TunedMap& weights) const {
        at::Tensor all = own.clone();
        const int64_t skipped = std::min(options_.skipped, own.size(0)), n = own.size(0) - skipped;
        all.narrow(0, skipped, n)
            .narrow(1, layout_.local, layout_.width() - layout_.local)
            .copy_(product(given, weights.map).narrow(0, skipped, n));
        return all;
    }

    /// d(loss) / d(map), (outputs, inputs), from that by the rebuilt rows.
    at::Tensor gradient(const at::Tensor& of_rows, const at::Tensor& given) const {
        at::Tensor outputs = of_rows.narrow(1, layout_.local, layout_.width() - layout_.local).clone();
        outputs.narrow(0, 0, std::min(options_.skipped, outputs.size(0))).zero_();
        return product(outputs.t().contiguous(), given.t().contiguous());
    }

    void compare(int layer, const ObservedSequence& first, const ObservedSequence& own, std::optional<double> rate,
                 int64_t t, AttentionLoss& loss) {
        auto& weights = weights_.at(layer);
        const at::Tensor expected = attended(layer, own.queries, own.keys, own.values);
        const at::Tensor keys_given = inputs(first.keys, own.keys), values_given = inputs(first.values, own.values);
        at::Tensor keys = rebuilt(keys_given, own.keys, weights.keys);
        at::Tensor values = rebuilt(values_given, own.values, weights.values);
        keys.set_requires_grad(rate.has_value());
        values.set_requires_grad(rate.has_value());
        const at::Tensor missed = (attended(layer, own.queries, keys, values) - expected).square().mean();
        loss.missed += missed.detach().item<double>();
        loss.whole += expected.square().mean().item<double>();
        if (!rate) return;
        const auto found = torch::autograd::grad({missed}, {keys, values});
        weights.keys.step(gradient(found[0], keys_given), *rate, t);
        weights.values.step(gradient(found[1], values_given), *rate, t);
    }

    const Transformer& model_;
    EchoLayout layout_;
    const EchoTuningOptions& options_;
    std::map<int, TunedLayer> weights_;
};

/// SplitMix64: the same stretches of the text on every machine.
uint64_t random_of(uint64_t seed, uint64_t step) {
    uint64_t z = seed + (step + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void require_options(std::span<const int32_t> ids, const EchoTuningOptions& options) {
    if (options.steps < 0 || options.sequence <= options.skipped || options.skipped < 0 || !(options.rate > 0))
        throw UsageError(
            fmt::format("{} steps of {} tokens, of which {} stay exact, at a rate of {}: expected steps from 0 "
                        "on, longer sequences and a rate above 0",
                        options.steps, options.sequence, options.skipped, options.rate));
    if (static_cast<int64_t>(ids.size()) < options.sequence)
        throw UsageError(fmt::format("the text has {} tokens, a sequence {}: give a longer text or shorter sequences",
                                     ids.size(), options.sequence));
}

}  // namespace

std::vector<double> tune_echo(const Model& model, EchoMaps& maps, std::span<const int32_t> ids,
                              const EchoTuningOptions& options, Progress& progress) {
    require_options(ids, options);
    EchoComparison comparison(model, maps, options);
    std::vector<double> losses;
    if (options.steps == 0) return losses;
    progress.begin("tuning", options.steps);
    const auto n_starts = static_cast<uint64_t>(ids.size()) - static_cast<uint64_t>(options.sequence) + 1;
    for (int64_t t = 0; t < options.steps; ++t) {
        const double done = static_cast<double>(t) / static_cast<double>(options.steps);
        const double rate = options.rate * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
        const size_t start = random_of(options.seed, static_cast<uint64_t>(t)) % n_starts;
        const auto sequence = ids.subspan(start, static_cast<size_t>(options.sequence));
        losses.push_back(comparison.read(sequence, rate, t + 1, progress).relative());
        progress.advance(t + 1);
    }
    comparison.write(maps);
    maps.facts["stage2"] = fmt::format("AdamW on attention's outputs, {} steps of {} tokens, rate {:g}, seed {}",
                                       options.steps, options.sequence, options.rate, options.seed);
    return losses;
}

double attention_error(const Model& model, const EchoMaps& maps, std::span<const int32_t> ids,
                       const EchoTuningOptions& options, Progress& progress) {
    require_options(ids, options);
    EchoComparison comparison(model, maps, options);
    const auto sequence = static_cast<size_t>(options.sequence);
    const auto n = ids.size() / sequence;
    progress.begin("comparing attention", static_cast<int64_t>(n));
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
        sum += comparison.read(ids.subspan(i * sequence, sequence), std::nullopt, 0, progress).relative();
        progress.advance(static_cast<int64_t>(i) + 1);
    }
    return sum / static_cast<double>(n);
}

}  // namespace kvscope::engine
