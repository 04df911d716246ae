#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "kernels/threads/parallel.h"
#include "policies/bases/score_operations.h"
#include "policies/bases/window_policy.h"
#include "policies/methods/score_dispersion.h"

namespace kvscope::policies {

namespace {

constexpr float preserved_score = 1.0f;

/// Maps a sum to a score below preserved_score and preserves the order of sums. Only sums above 1/2 change.
float below_preserved(double sum) { return static_cast<float>(sum > 0.5 ? 1.0 - 0.25 / sum : sum); }

/// SnapKV's scores with two additions: the least focused heads use a longer window, and important tokens that few lower
/// layers kept get a focus term. Equations and algorithm lines refer to the paper.
class KVec : public WindowPolicy, public Gathers {
 public:
    explicit KVec(const ParameterValues& values)
        : WindowPolicy(values),
          extended_window_(static_cast<int>(values.integer("extended_window"))),
          delta_(values.integer("delta")),
          by_entropy_(values.text("criterion") == "entropy"),
          cross_head_(values.boolean("cross_head")),
          cross_layer_(values.boolean("cross_layer")),
          lambda_(values.real("lambda")),
          beta_(values.real("beta")),
          reduction_(reduction_of(values)),
          pooling_(pooling_of(values)),
          kernel_(values.integer("kernel")) {}

    Needs needs() const override {
        return {.window_queries = cross_head_ ? std::max(window(), extended_window_) : window()};
    }

    void begin(const RunContext& context) override {
        WindowPolicy::begin(context);
        layers_keeping_.assign(static_cast<size_t>(context.n_tokens), 0);
    }

    void gather(LayerObservations& observations) override {
        shared_scores(observations)->announce_ranking(n_tokens());
        if (cross_layer_) observations.window_peak(window());
    }

    Selection select(LayerObservations& observations) override {
        const auto shared = shared_scores(observations);
        Selection selection = select_from_scores(
            observations.layer, {Granularity::kv_head, cross_layer_ ? with_focus(observations, *shared) : *shared, {}});
        if (cross_layer_) count(selection);
        return selection;
    }

    Selection select_from_scores(int layer, LayerScores scores) override {
        require_valid_scores(layer, scores.scores, rows(), n_prefix(), n_tokens());
        Selection selection;
        selection.rows =
            best_and_tail(scores.scores, std::vector<int64_t>(static_cast<size_t>(rows()), layer_budget(layer)),
                          n_prefix(), n_tokens());
        selection.scores = std::move(scores.scores);
        return selection;
    }

 private:
    /// Returns scores without the cross-layer terms, which depend on the run's kept entries.
    std::shared_ptr<const Scores<float>> shared_scores(LayerObservations& observations) const {
        const std::string key =
            fmt::format("k-vec {} {} {} {} {} {} {} {}", window(), extended_window_, delta_, by_entropy_, cross_head_,
                        static_cast<int>(reduction_), static_cast<int>(pooling_), kernel_);
        return observations.shared<Scores<float>>(key, [&] { return pooled_attention(observations); });
    }

    Scores<float> pooled_attention(LayerObservations& observations) const {
        std::vector<float> attention = mean_attention(observations, window());
        if (cross_head_) widen_unfocused(observations, attention);
        return pooled_prefix(pooling_, kernel_, attention, rows(), n_prefix(), n_tokens());
    }

    /// Returns the mean attention P of the last `window` queries (G, N; Eq. 8).
    std::vector<float> mean_attention(LayerObservations& observations, int window) const {
        const std::vector<float>& attention = observations.window_attention(window, 0.0f, SoftmaxRange::visible);
        std::vector<float> mean = reduce_scores_by_head<float>(context().shape, Granularity::kv_head, reduction_,
                                                               attention.data(), n_tokens());
        require_valid_scores(observations.layer, mean, rows(), n_prefix(), n_tokens());
        return mean;
    }

    /// Recomputes the attention of the `delta` least focused heads with the extended window (Algorithm 1, lines 3-7).
    void widen_unfocused(LayerObservations& observations, std::vector<float>& attention) const {
        std::vector<double> focus(static_cast<size_t>(rows()));
        kernels::parallel_for(rows(), rows() * n_prefix(), [&](int64_t row) {
            const std::span<const float> of_row(attention.data() + row * n_tokens(), static_cast<size_t>(n_prefix()));
            focus[static_cast<size_t>(row)] = by_entropy_ ? -entropy(of_row) : standard_deviation(of_row);
        });
        std::vector<int> heads(static_cast<size_t>(rows()));
        std::iota(heads.begin(), heads.end(), 0);
        std::stable_sort(heads.begin(), heads.end(),
                         [&](int a, int b) { return focus[static_cast<size_t>(a)] < focus[static_cast<size_t>(b)]; });
        heads.resize(static_cast<size_t>(std::min<int64_t>(delta_, std::max(1, rows() - 1))));
        const std::vector<float> wider = mean_attention(observations, extended_window_);
        for (int head : heads) {
            std::copy_n(wider.begin() + head * n_tokens(), n_tokens(), attention.begin() + head * n_tokens());
        }
    }

    /// Adds the focus term and the preserved tokens to scores (G, N) (Algorithm 1, lines 8-14).
    Scores<float> with_focus(LayerObservations& observations, const Scores<float>& without) const {
        const std::vector<float>& peak = observations.window_peak(window());
        std::vector<double> focus(static_cast<size_t>(n_prefix()));
        for (size_t t = 0; t < focus.size(); ++t) {
            const double coverage = static_cast<double>(layers_keeping_[t]) / (observations.layer + 1);
            focus[t] = lambda_ * peak[t] * (1.0 - coverage);
        }
        const int64_t budget = std::min(context().budget, n_tokens());
        const auto share = static_cast<int64_t>(std::floor(beta_ * static_cast<double>(budget) + 1e-9));
        const int64_t n_preserved = std::min(share, layer_budget(observations.layer));
        const std::vector<int64_t> counts(static_cast<size_t>(rows()), n_preserved);
        const auto preserved = best_and_tail(without, counts, n_prefix(), n_tokens());
        std::vector<float> scores = without.vector();
        kernels::parallel_for(rows(), rows() * n_prefix(), [&](int64_t row) {
            float* score = scores.data() + row * n_tokens();
            for (size_t t = 0; t < focus.size(); ++t) score[t] = below_preserved(score[t] + focus[t]);
            for (int64_t i = 0; i < n_preserved; ++i)
                score[preserved[static_cast<size_t>(row)][static_cast<size_t>(i)]] = preserved_score;
        });
        return scores;
    }

    void count(const Selection& selection) {
        std::vector<bool> is_kept(layers_keeping_.size());
        for (const auto& row : selection.rows) {
            for (uint32_t token : row) is_kept[token] = true;
        }
        for (size_t t = 0; t < is_kept.size(); ++t) layers_keeping_[t] += is_kept[t];
    }

    int extended_window_;
    int64_t delta_;
    bool by_entropy_;
    bool cross_head_;
    bool cross_layer_;
    double lambda_;
    double beta_;
    kernels::HeadReduction reduction_;
    kernels::Pooling pooling_;
    int64_t kernel_;
    std::vector<int> layers_keeping_;  ///< n_t of Eq. 12: number of layers so far in which any head kept the token
};

Parameter cross_layer_parameter() {
    Parameter parameter =
        boolean_parameter("cross_layer", true,
                          "Whether scores include cross-layer coverage: the focus term (Eq. 12-15) and the preserved "
                          "tokens (Eq. 16). With off, attention alone ranks the tokens.");
    parameter.binds_scores_to_budget = true;
    return parameter;
}

/// Uses the entries that lower layers kept.
class CrossLayerKVec : public KVec, public DecidesInOrder {
 public:
    using KVec::KVec;
};

}  // namespace

Definition k_vec_definition() {
    return {
        .name = "k-vec",
        .title = "K-VEC",
        .paper =
            "Coverage-Driven KV Cache Eviction for Efficient and Improved Inference of LLM, anonymous, under review",
        .summary =
            "Extends SnapKV to cover more tokens. The least focused heads of a layer use a longer window, and tokens "
            "that few earlier layers kept get higher scores. The recorded scores are P' of Algorithm 1. Preserved "
            "tokens have score 1. Other scores above 1/2 are recorded as 1 - 1 / (4 P'), so that they stay below 1 and "
            "in the same order.",
        .parameters =
            {
                window_parameter(16),
                integer_parameter("extended_window", 32, {.low = 1},
                                  "Number of last prompt tokens whose queries rank the prefix in the least focused "
                                  "heads (O', Eq. 11)."),
                integer_parameter("delta", 3, {.low = 1},
                                  "Number of heads per layer that use the extended window. At least one head keeps the "
                                  "normal window."),
                choice_parameter("criterion", {"sd", "entropy"}, "sd",
                                 "Criterion for the least focused heads: the lowest standard deviation (Eq. 10) or the "
                                 "highest entropy (Table 10f) of their scores."),
                boolean_parameter(
                    "cross_head", true,
                    "Whether the least focused heads use the extended window (cross-head coverage, Eq. 10-11)."),
                cross_layer_parameter(),
                real_parameter("lambda", 1.0, {.low = 0.0, .high = 10.0},
                               "Weight of the focus term. The term is a token's importance times the share of earlier "
                               "layers that did not keep the token (Eq. 15)."),
                real_parameter("beta", 0.25, {.low = 0.0, .high = 1.0},
                               "Share of the budget for the tokens with the most attention, regardless of the focus "
                               "term (Eq. 16)."),
                pooling_parameter("max"),
                kernel_parameter(),
                reduce_parameter(),
                key_positions_parameter(),
            },
        .create =
            [](const ParameterValues& values) {
                return values.boolean("cross_layer") ? make_policy<CrossLayerKVec>(values) : make_policy<KVec>(values);
            },
    };
}

}  // namespace kvscope::policies
