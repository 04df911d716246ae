#include "engine/echo/echo_tuning.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"
#include "engine/echo/echo_training.h"
#include "engine/echo/resumable_state.h"
#include "engine/prefill/prefill.h"
#include "policies/methods/seeded_random.h"

namespace kvscope::engine {
namespace {

using policies::EchoLayout;
using policies::EchoMaps;

constexpr const char* tuning_state_name = "kvscope echo tuning 1\n";

/// A map that gradient descent changes, with the optimizer's moments.
class TunedMap {
 public:
    explicit TunedMap(const policies::Matrix& from);

    /// The transposed map, (outputs, inputs) f32, contiguous.
    [[nodiscard]] const at::Tensor& weights() const { return weights_; }
    [[nodiscard]] policies::Matrix matrix() const;

    /// Performs step t, counted from 1, of AdamW (Loshchilov and Hutter, 2019, algorithm 2) with PyTorch's betas 0.9
    /// and 0.999 and weight decay 0.01: m = 0.9 m + 0.1 g, v = 0.999 v + 0.001 g^2,
    /// w -= rate (0.01 w + m / (1 - 0.9^t) / (sqrt(v / (1 - 0.999^t)) + 1e-8)).
    /// @param gradient (outputs, inputs) f32
    void step(const at::Tensor& gradient, double rate, int64_t t);

    void add_parts(ResumableState::Parts& parts);

 private:
    at::Tensor weights_, mean_, square_;
};

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

struct TunedLayer {
    TunedMap keys, values;
};

at::Tensor rows_of(const policies::EntriesView& view, const EchoLayout& layout, int64_t n) {
    at::Tensor rows = at::empty({n, layout.width()}, at::kFloat);
    for (int64_t token = 0; token < n; ++token)
        for (int head = 0; head < layout.n_kv_heads; ++head)
            policies::read_entry(view, head, token, layout.head_dim,
                                 rows.data_ptr<float>() + token * layout.width() + head * layout.head_dim);
    return rows;
}

class EchoComparison {
 public:
    EchoComparison(const Model& model, const EchoMaps& maps, const EchoTuningOptions& options)
        : setup_{model.transformer().on_processor(), maps.layout, options.loss, options.skipped} {
        for (const auto& [layer, of_layer] : maps.layers)
            weights_.emplace(layer, TunedLayer{TunedMap(of_layer.keys), TunedMap(of_layer.values)});
    }

    EchoStep error(std::span<const int32_t> ids, Progress& progress) const {
        return summed(losses(ids, false, progress));
    }

    /// Performs step t, counted from 1. A cancelled step changes no map.
    EchoStep step(std::span<const int32_t> ids, double rate, int64_t t, Progress& progress) {
        const auto found = losses(ids, true, progress);
        for (const auto& [layer, loss] : found) {
            auto& maps = weights_.at(layer);
            if (loss.keys_gradient.defined()) maps.keys.step(loss.keys_gradient, rate, t);
            if (loss.values_gradient.defined()) maps.values.step(loss.values_gradient, rate, t);
        }
        EchoStep step = summed(found);
        step.rate = rate;
        return step;
    }

    void write(EchoMaps& maps) const {
        for (const auto& [layer, of_layer] : weights_)
            maps.layers[layer] = {of_layer.keys.matrix(), of_layer.values.matrix()};
    }

    void add_parts(ResumableState::Parts& parts) {
        for (auto& [layer, maps] : weights_) {
            maps.keys.add_parts(parts);
            maps.values.add_parts(parts);
        }
    }

 private:
    std::map<int, EchoLayerLoss> losses(std::span<const int32_t> ids, bool with_gradients, Progress& progress) const {
        const bool with_queries = setup_.loss != EchoLoss::keys_values;
        EchoSequence first;
        std::map<int, EchoLayerLoss> losses;
        const int n_queries = with_queries ? static_cast<int>(ids.size()) : 0;
        read_layers(setup_.model, ids, n_queries, progress, [&](PrefillLayer& layer) {
            EchoSequence own = observe(layer.prompt, static_cast<int64_t>(ids.size()), with_queries);
            if (setup_.layout.is_first(layer.layer)) {
                first = std::move(own);
            } else if (setup_.layout.is_rebuilt(layer.layer)) {
                const auto& maps = weights_.at(layer.layer);
                losses[layer.layer] = compute_layer_loss(setup_, layer.layer, first, own, maps.keys.weights(),
                                                         maps.values.weights(), with_gradients);
            }
        });
        return losses;
    }

    EchoSequence observe(const policies::LayerObservations& from, int64_t n, bool with_queries) const {
        EchoSequence sequence{rows_of(from.keys_before_rope, setup_.layout, n), rows_of(from.values, setup_.layout, n)};
        if (!with_queries) return sequence;
        const auto& shape = from.shape;
        at::Tensor queries = at::empty({shape.n_heads, n, shape.head_dim}, at::kFloat);
        std::copy(from.window_queries.begin(), from.window_queries.end(), queries.data_ptr<float>());
        sequence.queries = queries.transpose(0, 1).reshape({n, -1}).contiguous();
        return sequence;
    }

    EchoStep summed(const std::map<int, EchoLayerLoss>& losses) const {
        EchoStep step;
        double scale = 0;
        for (const auto& [layer, loss] : losses) {
            step.loss += loss.loss;
            scale += loss.scale;
        }
        const double share = scale > 0 ? step.loss / scale : 0.0;
        step.error = setup_.loss == EchoLoss::qk_kl ? share : std::sqrt(share);
        return step;
    }

    EchoLossSetup setup_;
    std::map<int, TunedLayer> weights_;
};

uint64_t hash_of_maps(const EchoMaps& maps) {
    uint64_t hash = 0;
    for (const auto& [layer, of_layer] : maps.layers)
        for (const auto* numbers : {&of_layer.keys.numbers, &of_layer.values.numbers})
            hash = XXH3_64bits_withSeed(numbers->data(), numbers->size() * sizeof(float), hash);
    return hash;
}

std::string what_is_tuned(const Model& model, const EchoMaps& maps, std::span<const int32_t> ids,
                          const EchoTuningOptions& options) {
    return fmt::format(
        "{model} {dtype} groups of {group} {local} local, maps {maps:016x}, {loss}, {steps} steps of {length} from "
        "{first} on, rate {rate}, seed {seed}, {ids:016x}",
        fmt::arg("model", model.fingerprint()), fmt::arg("dtype", kernels::name_of(model.transformer().dtype())),
        fmt::arg("group", maps.layout.group), fmt::arg("local", maps.layout.local),
        fmt::arg("maps", hash_of_maps(maps)), fmt::arg("loss", echo_loss_name(options.loss)),
        fmt::arg("steps", options.steps), fmt::arg("length", options.sequence), fmt::arg("first", options.skipped),
        fmt::arg("rate", options.rate), fmt::arg("seed", options.seed),
        fmt::arg("ids", XXH3_64bits(ids.data(), ids.size_bytes())));
}

void require_options(std::span<const int32_t> ids, const EchoTuningOptions& options) {
    if (options.steps < 0 || options.sequence <= options.skipped || options.skipped < 0 || !(options.rate > 0))
        throw UsageError(
            fmt::format("{} steps of {} tokens, {} of them exact, with rate {}: expected 0 or more steps, "
                        "sequences longer than their exact tokens, and a rate above 0",
                        options.steps, options.sequence, options.skipped, options.rate));
    if (static_cast<int64_t>(ids.size()) < options.sequence)
        throw UsageError(
            fmt::format("the text has {} tokens, but a sequence has {}: read more of the text, or use a longer text or "
                        "shorter sequences",
                        ids.size(), options.sequence));
}

class DrawnSequences {
 public:
    DrawnSequences(std::span<const int32_t> ids, const EchoTuningOptions& options, int64_t before)
        : ids_(ids), length_(static_cast<size_t>(options.sequence)), random_(options.seed) {
        for (int64_t t = 0; t < before; ++t) random_.next();
    }

    std::span<const int32_t> next() { return ids_.subspan(random_.next() % (ids_.size() - length_ + 1), length_); }

 private:
    std::span<const int32_t> ids_;
    size_t length_;
    policies::SeededRandom random_;
};

}  // namespace

policies::EchoMaps make_random_echo_maps(const Model& model, double ratio, uint64_t seed) {
    EchoMaps maps = make_echo_map_layout(model, ratio);
    const auto& layout = maps.layout;
    for (int layer = 0; layer < layout.n_layers; ++layer) {
        if (!layout.is_rebuilt(layer)) continue;
        const auto drawn = [&](int kind) {
            policies::Matrix matrix{layout.width() + layout.local, layout.width() - layout.local, {}};
            matrix.numbers.resize(static_cast<size_t>(matrix.n_rows) * static_cast<size_t>(matrix.n_columns));
            auto random = policies::row_random(seed, layer, kind);
            const double bound = 1.0 / std::sqrt(matrix.n_rows);
            for (float& number : matrix.numbers) number = static_cast<float>((2.0 * random.unit() - 1.0) * bound);
            return matrix;
        };
        maps.layers[layer] = {drawn(0), drawn(1)};
    }
    return maps;
}

std::vector<EchoStep> tune_echo_maps(const Model& model, EchoMaps& maps, std::span<const int32_t> ids,
                                     const EchoTuningOptions& options, Progress& progress) {
    require_options(ids, options);
    std::vector<EchoStep> steps(static_cast<size_t>(options.steps));
    if (options.steps == 0) return steps;
    EchoComparison comparison(model, maps, options);
    ResumableState::Parts parts{std::as_writable_bytes(std::span(steps))};
    comparison.add_parts(parts);
    ResumableState state(options.state, tuning_state_name, what_is_tuned(model, maps, ids, options));
    const int64_t before = state.resume(parts, options.steps, "steps", progress);
    if (options.on_resumed && before > 0)
        options.on_resumed(std::span<const EchoStep>(steps).first(static_cast<size_t>(before)));
    DrawnSequences sequences(ids, options, before);
    progress.begin(options.loss == EchoLoss::keys_values ? "training" : "tuning", options.steps - before, "steps");
    for (int64_t t = before; t < options.steps; ++t) {
        const double share = static_cast<double>(t) / static_cast<double>(options.steps);
        const double rate = options.rate * 0.5 * (1.0 + std::cos(std::numbers::pi * share));
        EchoStep& step = steps[static_cast<size_t>(t)];
        try {
            step = comparison.step(sequences.next(), rate, t + 1, progress);
        } catch (const Stopped&) {
            if (t > before) state.keep(parts, t, progress);
            throw;
        }
        if (options.on_step) options.on_step(step);
        progress.advance(t + 1 - before);
        state.keep_each_minute(parts, t + 1, progress);
    }
    if (before < options.steps) state.keep(parts, options.steps, progress);
    comparison.write(maps);
    maps.facts[options.loss == EchoLoss::keys_values ? "stage1" : "stage2"] =
        fmt::format("AdamW on {}, {} steps of {} tokens, rate {:g}, seed {}", echo_loss_name(options.loss),
                    options.steps, options.sequence, options.rate, options.seed);
    return steps;
}

double evaluate_echo_loss(const Model& model, const EchoMaps& maps, std::span<const int32_t> ids,
                          const EchoTuningOptions& options, Progress& progress) {
    require_options(ids, options);
    const EchoComparison comparison(model, maps, options);
    const auto sequence = static_cast<size_t>(options.sequence);
    const auto n = ids.size() / sequence;
    progress.begin("comparing", static_cast<int64_t>(n), "sequences");
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
        sum += comparison.error(ids.subspan(i * sequence, sequence), progress).error;
        progress.advance(static_cast<int64_t>(i) + 1);
    }
    return sum / static_cast<double>(n);
}

void refuse_foreign_state_file(const std::filesystem::path& path) { ResumableState(path, tuning_state_name, {}); }

}  // namespace kvscope::engine
