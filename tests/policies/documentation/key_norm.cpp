#include <cmath>

#include "policies/bases/scoring_policy.h"

namespace kvscope::policies {

namespace {

/// In each KV head, keeps the B - recent entries with the smallest key norms, because they attract attention.
class KeyNorm : public ScoringPolicy {
 public:
    explicit KeyNorm(const ParameterValues& values) : ScoringPolicy(values) {}

    Needs needs() const override { return {.entries = true}; }

 protected:
    std::vector<float> score(LayerObservations& observations) override {
        const ModelShape& shape = observations.shape;
        std::vector<float> scores, key(static_cast<size_t>(shape.head_dim));
        for (int g = 0; g < shape.n_kv_heads; ++g) {
            for (int64_t j = 0; j < observations.n_tokens; ++j) {
                read_entry(observations.keys, g, j, shape.head_dim, key.data());
                double squares = 0.0;
                for (float value : key) squares += static_cast<double>(value) * value;
                scores.push_back(static_cast<float>(-std::sqrt(squares)));
            }
        }
        return scores;
    }
};

}  // namespace

Definition key_norm_definition() {
    return {
        .name = "key-norm",
        .title = "Key norm",
        .paper =
            "Devoto et al., A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression, EMNLP 2024, "
            "arXiv:2406.11430",
        .summary = "Keeps the entries whose keys have the smallest norm.",
        .parameters =
            {
                mark_as_after_scoring(
                    integer_parameter("recent", 0, {.low = 0}, "Number of last entries that are always kept.")),
                key_positions_parameter(),
            },
        .create = make_policy<KeyNorm>,
    };
}

}  // namespace kvscope::policies
