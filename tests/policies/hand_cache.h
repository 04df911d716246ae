#pragma once

#include <cmath>
#include <vector>

#include "policies/registry/registry.h"
#include "tests/policies/random_cache.h"

namespace kvscope::policies::test {

/// Relative attention weights of a KV head's queries (0 becomes 1e-12).
struct HeadWeights {
    std::vector<double> late;        ///< of the last queries
    std::vector<double> early = {};  ///< of the earlier queries; empty for the same weights
};

/// A layer with known softmax weights: `group` query heads per KV head have the same queries. The last `n_late` queries
/// weight the keys as `late`, earlier ones as `early`; later keys have no weight.
[[nodiscard]] inline Layer hand_layer(const std::vector<HeadWeights>& heads, int64_t n_late, int group = 1) {
    constexpr int d = 8;
    Layer layer;
    layer.shape.n_kv_heads = static_cast<int>(heads.size());
    layer.shape.n_heads = layer.shape.n_kv_heads * group;
    layer.shape.head_dim = d;
    layer.n_tokens = static_cast<int64_t>(heads[0].late.size());
    for (const HeadWeights& head : heads) {
        for (int64_t j = 0; j < layer.n_tokens; ++j) {
            std::vector<float> key(d, 0.0f);
            const auto& early = head.early.empty() ? head.late : head.early;
            key[0] = static_cast<float>(std::log(std::max(head.late[static_cast<size_t>(j)], 1e-12)));
            key[1] = static_cast<float>(std::log(std::max(early[static_cast<size_t>(j)], 1e-12)));
            layer.keys.insert(layer.keys.end(), key.begin(), key.end());
        }
        for (int64_t i = 0; i < layer.n_tokens * group; ++i) {
            std::vector<float> query(d, 0.0f);
            query[i % layer.n_tokens < layer.n_tokens - n_late] = std::sqrt(static_cast<float>(d));
            layer.queries.insert(layer.queries.end(), query.begin(), query.end());
        }
    }
    layer.values = layer.keys;
    return layer;
}

[[nodiscard]] inline Cache hand_cache(std::vector<Layer> layers) {
    Cache cache;
    cache.layers = std::move(layers);
    for (Layer& layer : cache.layers) layer.shape.n_layers = static_cast<int>(cache.layers.size());
    cache.observe(32);
    return cache;
}

using Rows = std::vector<std::vector<uint32_t>>;

/// The rows that a policy keeps in each layer.
[[nodiscard]] inline std::vector<Rows> kept_by(const PolicySpec& spec, Cache& cache, int64_t budget) {
    std::vector<Rows> kept;
    for (const Selection& selection : select_all(spec.create(), cache, budget)) kept.push_back(selection.rows);
    return kept;
}

[[nodiscard]] inline std::vector<Rows> kept_by(const char* policy, Cache& cache, int64_t budget) {
    return kept_by(parse_policy(policy), cache, budget);
}

}  // namespace kvscope::policies::test
