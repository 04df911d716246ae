#include "policies/interface/snapkv_family.h"

#include <utility>

#include "policies/interface/selection.h"

namespace kvscope::policies {

SnapKvFamily::SnapKvFamily(const ParameterValues& values)
    : WindowPolicy(values),
      lambda_(static_cast<float>(values.real("lambda"))),
      reduction_(reduction_of(values)),
      pooling_(pooling_of(values)),
      kernel_(values.integer("kernel")) {}

Selection SnapKvFamily::select(LayerObservations& observations) {
    return select_by_attention(observations.layer, window_attention(observations));
}

const std::vector<float>& SnapKvFamily::window_attention(LayerObservations& observations) const {
    return observations.window_attention(window(), lambda_, SoftmaxRange::visible);
}

Selection SnapKvFamily::select_by_attention(int layer, const std::vector<float>& attention) {
    LayerScores scores{granularity(),
                       scores_by_row<float>(context().shape, granularity(), reduction_, attention.data(), n_tokens()),
                       {}};
    // Pooling would spread a NaN or swallow it; named here, it is found where it arose.
    require_scores(layer, scores.scores, rows(), n_prefix(), n_tokens());
    std::vector<float> pooled(static_cast<size_t>(rows() * n_prefix()));
    for (int row = 0; row < rows(); ++row) {
        kernels::pool(pooling_, scores.scores.data() + row * n_tokens(), n_prefix(), kernel_,
                      pooled.data() + row * n_prefix());
    }
    scores.scores = padded_with_nan(pooled, rows(), n_prefix(), n_tokens());
    finish_scores(layer, scores.scores);
    return select_from_scores(layer, std::move(scores));
}

Selection SnapKvFamily::select_from_scores(int layer, LayerScores scores) {
    require_scores(layer, scores.scores, rows(), n_prefix(), n_tokens());
    Selection selection;
    selection.granularity = granularity();
    selection.rows = best_and_tail(scores.scores, head_budgets(layer, scores.scores), n_prefix(), n_tokens());
    selection.scores = std::move(scores.scores);
    return selection;
}

std::vector<int64_t> SnapKvFamily::head_budgets(int layer, const std::vector<float>&) const {
    return std::vector<int64_t>(static_cast<size_t>(rows()), layer_budget(layer));
}

std::vector<Parameter> snapkv_family_parameters(std::vector<Parameter> own) {
    std::vector<Parameter> all{window_parameter(32), pooling_parameter("max"), kernel_parameter(), reduce_parameter(),
                               lambda_parameter(0.0)};
    for (Parameter& parameter : own) all.push_back(std::move(parameter));
    all.push_back(granularity_parameter());
    all.push_back(positions_parameter());
    return all;
}

}  // namespace kvscope::policies
