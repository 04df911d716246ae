#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "policies/api/observations.h"
#include "policies/api/policy.h"
#include "policies/registry/decidable_layers.h"

namespace kvscope::policies::test {

/// One layer's post-RoPE queries of all prompt tokens (H, N, d), keys and values (G, N, d), and the observations of a
/// prefill that keeps the last `n_window` queries.
struct Layer {
    ModelShape shape;
    int64_t n_tokens = 0;
    std::vector<float> queries, keys, values;
    std::vector<float> window_queries, attention_sums, answer_attention, appended_queries, appended_keys;
    std::vector<float> token_probabilities;  ///< derived from the values

    /// Computes attention sums by the definition.
    void sum_attention() {
        const int64_t n = n_tokens, d = shape.head_dim;
        attention_sums.assign(static_cast<size_t>(shape.n_heads * n), 0.0f);
        for (int h = 0; h < shape.n_heads; ++h) {
            const float* of_head = queries.data() + h * n * d;
            std::vector<double> sums(static_cast<size_t>(n), 0.0);
            for (int64_t i = 0; i < n; ++i) {
                const std::vector<double> weights = attention(h, of_head + i * d, i + 1);
                for (int64_t j = 0; j <= i; ++j) sums[static_cast<size_t>(j)] += weights[static_cast<size_t>(j)];
            }
            std::copy(sums.begin(), sums.end(), attention_sums.begin() + h * n);
        }
    }

    /// Sets the observations. The appended tokens are copies of the first three prompt tokens, whose queries also serve
    /// as the answer's.
    void tell(int index, int n_window, LayerObservations& observations) {
        const int64_t n = n_tokens, d = shape.head_dim;
        const int64_t w = std::min<int64_t>(n_window, n);
        window_queries.clear();
        for (int h = 0; h < shape.n_heads; ++h) {
            const float* of_head = queries.data() + h * n * d;
            window_queries.insert(window_queries.end(), of_head + (n - w) * d, of_head + n * d);
        }
        observations.layer = index;
        observations.shape = shape;
        observations.n_tokens = n;
        observations.keys = {keys.data(), kernels::DType::f32, n * d};
        observations.keys_before_rope = observations.keys;
        observations.values = {values.data(), kernels::DType::f32, n * d};
        observations.window_queries = window_queries;
        observations.n_window = static_cast<int>(w);
        observations.attention_sums = attention_sums;
        token_probabilities.clear();
        for (int64_t j = 0; j < n; ++j)
            token_probabilities.push_back(1.0f / (1.0f + std::exp(values[static_cast<size_t>(j * d)])));
        observations.token_probabilities = token_probabilities;
        append(std::min<int64_t>(3, n), observations);
    }

    void append(int64_t n_appended, LayerObservations& observations) {
        const int64_t n = n_tokens, d = shape.head_dim;
        appended_queries.clear();
        appended_keys.clear();
        answer_attention.assign(static_cast<size_t>(shape.n_heads * n), 0.0f);
        for (int h = 0; h < shape.n_heads; ++h) {
            const float* of_head = queries.data() + h * n * d;
            appended_queries.insert(appended_queries.end(), of_head, of_head + n_appended * d);
            for (int64_t i = 0; i < n_appended; ++i) {
                const std::vector<double> weights = attention(h, of_head + i * d, n);
                for (int64_t j = 0; j < n; ++j)
                    answer_attention[static_cast<size_t>(h * n + j)] +=
                        static_cast<float>(weights[static_cast<size_t>(j)]);
            }
        }
        for (int g = 0; g < shape.n_kv_heads; ++g) {
            const float* of_head = keys.data() + g * n * d;
            appended_keys.insert(appended_keys.end(), of_head, of_head + n_appended * d);
        }
        const auto m = static_cast<int>(n_appended);
        observations.set_appended(appended_queries, {appended_keys.data(), kernels::DType::f32, m * d}, m, m);
        observations.answer_attention = answer_attention;
    }

    /// Softmax weights of a query of head h over the first `visible` keys, by the definition.
    [[nodiscard]] std::vector<double> attention(int h, const float* query, int64_t visible) const {
        const int64_t d = shape.head_dim;
        const float* of_group = keys.data() + h / shape.group() * n_tokens * d;
        std::vector<double> weights(static_cast<size_t>(visible));
        double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
        for (int64_t j = 0; j < visible; ++j) {
            double dot = 0.0;
            for (int64_t c = 0; c < d; ++c) dot += static_cast<double>(query[c]) * of_group[j * d + c];
            weights[static_cast<size_t>(j)] = dot / std::sqrt(static_cast<double>(d));
            largest = std::max(largest, weights[static_cast<size_t>(j)]);
        }
        for (double& weight : weights) sum += weight = std::exp(weight - largest);
        for (double& weight : weights) weight /= sum;
        return weights;
    }
};

/// All layers of a prompt.
struct Cache {
    std::vector<Layer> layers;
    std::vector<std::unique_ptr<LayerObservations>> observations;

    [[nodiscard]] RunContext context(int64_t budget) const {
        RunContext context;
        context.shape = layers[0].shape;
        context.n_tokens = layers[0].n_tokens;
        context.budget = budget;
        context.calibration = [this](int layer, Projected which) { return moments(layer, which); };
        return context;
    }

    /// Returns moments of the cache's own keys or values in the format of RunContext::calibration.
    [[nodiscard]] std::vector<double> moments(int layer, Projected which) const {
        const Layer& of = layers[static_cast<size_t>(layer)];
        const auto& all = which == Projected::keys ? of.keys : of.values;
        const auto n = static_cast<size_t>(of.n_tokens), d = static_cast<size_t>(of.shape.head_dim);
        const size_t width = d * static_cast<size_t>(of.shape.n_kv_heads);
        const auto number = [&](size_t token, size_t i) { return double{all[(i / d * n + token) * d + i % d]}; };
        std::vector<double> sums(width * width, 0.0);
        for (size_t token = 0; token < n; ++token)
            for (size_t i = 0; i < width; ++i)
                for (size_t j = 0; j <= i; ++j) sums[i * width + j] += number(token, i) * number(token, j);
        return sums;
    }

    void observe(int n_window) {
        for (Layer& layer : layers) layer.sum_attention();
        tell(n_window);
    }

    /// Creates the observations again, without data that policies derived from them.
    void tell(int n_window) {
        observations.clear();
        for (size_t i = 0; i < layers.size(); ++i) {
            observations.push_back(std::make_unique<LayerObservations>());
            layers[i].tell(static_cast<int>(i), n_window, *observations.back());
        }
    }
};

/// Normally distributed queries and keys with features of real ones: sinks, a common component of queries, and similar
/// heads.
[[nodiscard]] inline Cache random_cache(ModelShape shape, int64_t n_tokens, unsigned seed, int n_window = 64) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Cache cache;
    const int64_t d = shape.head_dim;
    for (int l = 0; l < shape.n_layers; ++l) {
        Layer layer;
        layer.shape = shape;
        layer.n_tokens = n_tokens;
        layer.queries.resize(static_cast<size_t>(shape.n_heads * n_tokens * d));
        layer.keys.resize(static_cast<size_t>(shape.n_kv_heads * n_tokens * d));
        layer.values.resize(layer.keys.size());
        for (float& value : layer.queries) value = normal(random);
        for (float& value : layer.keys) value = normal(random);
        for (float& value : layer.values) value = normal(random);
        for (int h = 0; h < shape.n_heads; ++h) {
            for (int64_t i = 0; i < n_tokens; ++i) layer.queries[static_cast<size_t>((h * n_tokens + i) * d)] += 2.0f;
        }
        for (int g = 0; g < shape.n_kv_heads; ++g) {
            layer.keys[static_cast<size_t>(g * n_tokens * d)] += 5.0f;  // position 0
        }
        cache.layers.push_back(std::move(layer));
    }
    cache.observe(n_window);
    return cache;
}

/// The selections of a policy after begin(), made as by the engine.
[[nodiscard]] inline std::vector<Selection> select_all(const CreatedPolicy& policy, Cache& cache) {
    std::vector<Selection> selections;
    DecidableLayers order;
    for (const auto& layer : cache.observations) {
        policy->observe(*layer);
        const auto [first, end] = order.after(policy, layer->layer, layer->shape.n_layers);
        for (int next = first; next < end; ++next)
            selections.push_back(policy->select(*cache.observations[static_cast<size_t>(next)]));
    }
    return selections;
}

[[nodiscard]] inline std::vector<Selection> select_all(const CreatedPolicy& policy, Cache& cache, int64_t budget) {
    policy->begin(cache.context(budget));
    return select_all(policy, cache);
}

}  // namespace kvscope::policies::test
