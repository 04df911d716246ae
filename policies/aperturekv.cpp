#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/divergence.h"
#include "kernels/integer_shares.h"
#include "kernels/score_pooling.h"
#include "kernels/softmax.h"
#include "kernels/threads/parallel.h"
#include "policies/bases/adaptive_policy.h"
#include "policies/bases/score_operations.h"
#include "policies/bases/window_policy.h"

namespace kvscope::policies {

namespace {

/// Diversifies the window's queries (QD) and sets each head's budget by how distinctive its scores are (RABA). Equation
/// numbers refer to the paper. Scores are f64, because the second softmax makes them nearly equal.
class ApertureKv : public WindowPolicy, public Gathers {
 public:
    explicit ApertureKv(const ParameterValues& values)
        : WindowPolicy(values),
          lambda_(values.boolean("qd") ? static_cast<float>(values.real("lambda")) : 0.0f),
          raba_(values.boolean("raba")),
          sharpen_(values.text("sharpen")),
          tau_(values.real("tau")),
          divergence_(values.text("divergence")),
          alpha_(values.real("alpha")),
          reduction_(reduction_of(values)),
          pooling_(pooling_of(values)),
          kernel_(values.integer("kernel")) {}

    void gather(LayerObservations& observations) override {
        shared_ranked(observations)->scores.announce_ranking(n_tokens());
    }

    Selection select(LayerObservations& observations) override {
        return select_ranked(observations.layer, *shared_ranked(observations));
    }

    Selection select_from_scores(int layer, LayerScores scores) override {
        require_valid_scores(layer, scores.scores_f64, rows(), n_prefix(), n_tokens());
        return select_ranked(layer, ranked_by(std::move(scores.scores_f64)));
    }

 private:
    struct Ranked {
        Scores<double> scores;
        std::vector<double> jsd;              ///< shape (R, R)
        std::vector<double> distinctiveness;  ///< (R), or empty unless budgets are reallocated
    };

    std::shared_ptr<const Ranked> shared_ranked(LayerObservations& observations) const {
        const std::string key = fmt::format("aperturekv {} {} {} {} {} {} {} {} {} {}", window(), lambda_, raba_,
                                            sharpen_, tau_, divergence_, static_cast<int>(reduction_),
                                            static_cast<int>(granularity()), static_cast<int>(pooling_), kernel_);
        return observations.shared<Ranked>(key, [&] { return ranked_by(scores_of(observations)); });
    }

    Scores<double> scores_of(LayerObservations& observations) const {
        const std::vector<float>& attention = observations.window_attention(window(), lambda_, SoftmaxRange::prefix);
        const std::vector<double> means =
            reduce_scores_by_head<double>(context().shape, granularity(), reduction_, attention.data(), n_prefix());
        require_valid_scores(observations.layer, means, rows(), n_prefix(), n_prefix());
        std::vector<double> scores = make_nan_scores<double>(rows(), n_tokens());
        kernels::parallel_for(rows(), rows() * n_prefix(), [&](int64_t row) {
            score_distribution(means.data() + row * n_prefix(), scores.data() + row * n_tokens());
        });
        require_valid_scores(observations.layer, scores, rows(), n_prefix(), n_tokens());
        return scores;
    }

    Ranked ranked_by(Scores<double> scores) const {
        const std::vector<double> distributions = as_distributions(scores);
        std::vector<double> jsd = matrix(kernels::jsd_matrix, distributions);
        std::vector<double> apart;
        if (raba_ && rows() > 1) apart = distinctiveness(jsd, distributions);
        return {std::move(scores), std::move(jsd), std::move(apart)};
    }

    Selection select_ranked(int layer, const Ranked& ranked) const {
        Selection selection;
        selection.granularity = granularity();
        selection.head_jsd.assign(ranked.jsd.begin(), ranked.jsd.end());
        selection.rows =
            best_and_tail(ranked.scores, head_budgets(ranked, layer_budget(layer)), n_prefix(), n_tokens());
        selection.scores_f64 = ranked.scores;
        return selection;
    }

    /// Computes the scores of Eq. 13 from a row's mean attention over the prefix (Eq. 12).
    void score_distribution(const double* mean, double* scores) const {
        kernels::pool(pooling_, mean, n_prefix(), kernel_, scores);
        if (sharpen_ != "none") kernels::softmax(scores, n_prefix(), sharpen_ == "temperature" ? tau_ : 1.0, scores);
    }

    /// Returns the scores (R, N) of the prefix as distributions. Without a second softmax, divides each row by its sum.
    std::vector<double> as_distributions(const Scores<double>& s) const {
        std::vector<double> rows_of_s(static_cast<size_t>(rows() * n_prefix()));
        kernels::parallel_for(rows(), rows() * n_prefix(), [&](int64_t row) {
            double* out = rows_of_s.data() + row * n_prefix();
            std::copy_n(s.data() + row * n_tokens(), n_prefix(), out);
            if (sharpen_ != "none") return;
            const double sum = std::accumulate(out, out + n_prefix(), 0.0);
            if (!(sum > 0.0)) return;
            for (int64_t j = 0; j < n_prefix(); ++j) out[j] /= sum;
        });
        return rows_of_s;
    }

    using Divergence = void (*)(const double*, int64_t, int64_t, double*);

    std::vector<double> matrix(Divergence divergence, const std::vector<double>& distributions) const {
        std::vector<double> values(static_cast<size_t>(rows() * rows()));
        divergence(distributions.data(), rows(), n_prefix(), values.data());
        return values;
    }

    /// Returns each head's mean divergence from the other heads (D_h of Eq. 15).
    std::vector<double> distinctiveness(const std::vector<double>& jsd,
                                        const std::vector<double>& distributions) const {
        const std::vector<double> divergences = divergence_ == "jsd" ? jsd
                                                : divergence_ == "kl"
                                                    ? matrix(kernels::kl_matrix, distributions)
                                                    : matrix(kernels::cross_entropy_matrix, distributions);
        std::vector<double> mean(static_cast<size_t>(rows()), 0.0);
        for (int h = 0; h < rows(); ++h) {
            for (int other = 0; other < rows(); ++other) {
                if (other != h) mean[static_cast<size_t>(h)] += divergences[static_cast<size_t>(h * rows() + other)];
            }
            mean[static_cast<size_t>(h)] /= rows() - 1;
        }
        return mean;
    }

    /// Returns the initial budgets (Eq. 14), reallocated by distinctiveness (Eq. 16-17) and mixed with the safeguard.
    std::vector<int64_t> head_budgets(const Ranked& ranked, int64_t c) const {
        std::vector<int64_t> budgets = count_best_by_row(ranked.scores, rows(), n_prefix(), n_tokens(), rows() * c);
        if (!ranked.distinctiveness.empty()) {
            std::vector<double> weighted = ranked.distinctiveness;
            for (size_t h = 0; h < weighted.size(); ++h) weighted[h] *= static_cast<double>(budgets[h]);
            if (std::accumulate(weighted.begin(), weighted.end(), 0.0) > 0.0) {
                const std::vector<int64_t> caps(budgets.size(), n_prefix());
                budgets = kernels::integer_shares(weighted, rows() * c, caps);
            }
        }
        return with_safeguard(std::move(budgets), c, alpha_);
    }

    float lambda_;
    bool raba_;
    std::string sharpen_;
    double tau_;
    std::string divergence_;
    double alpha_;
    kernels::HeadReduction reduction_;
    kernels::Pooling pooling_;
    int64_t kernel_;
};

}  // namespace

Definition aperturekv_definition() {
    return {
        .name = "aperturekv",
        .title = "ApertureKV",
        .paper =
            "Mitigating the Echo Chamber Effect in KV Cache Compression via Coverage Optimization, anonymous, under "
            "review",
        .summary =
            "Ranks the prefix by the attention of diversified window queries. In each layer, heads with more "
            "distinctive score distributions keep more entries.",
        .parameters =
            {
                window_parameter(8),
                lambda_parameter(0.45),
                boolean_parameter(
                    "qd", true,
                    "Whether the window queries are diversified (Eq. 9-11). Off has the same effect as lambda = 0."),
                mark_as_after_scoring(
                    boolean_parameter("raba", true,
                                      "Whether the heads' budgets are reallocated by how distinctive the heads are "
                                      "(Eq. 15-17). With off, heads keep the initial budgets of Eq. 14.")),
                choice_parameter("sharpen", {"softmax", "none", "temperature"}, "softmax",
                                 "Second normalization of the mean attention: softmax (Eq. 13, as published), none, or "
                                 "softmax with temperature tau."),
                real_parameter("tau", 1.0, {.low = 0.0, .low_open = true},
                               "Temperature of the second softmax if sharpen=temperature. Values below 1 sharpen the "
                               "distribution."),
                mark_as_after_scoring(choice_parameter("divergence", {"jsd", "kl", "cross-entropy"}, "jsd",
                                                       "Divergence that measures how distinctive a head is (Eq. 15). "
                                                       "Table 5 of the paper compares the divergences.")),
                pooling_parameter("none"),
                kernel_parameter(),
                reduce_parameter(),
                alpha_parameter(0.0),
                granularity_parameter(),
                key_positions_parameter(),
            },
        .create = make_policy<ApertureKv>,
    };
}

}  // namespace kvscope::policies
