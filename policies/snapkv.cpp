#include <fmt/format.h>

#include <string>
#include <utility>

#include "policies/bases/score_operations.h"
#include "policies/bases/snapkv_family.h"

namespace kvscope::policies {

SnapKvFamily::SnapKvFamily(const ParameterValues& values)
    : WindowPolicy(values),
      lambda_(static_cast<float>(values.real("lambda"))),
      reduction_(reduction_of(values)),
      pooling_(pooling_of(values)),
      kernel_(values.integer("kernel")) {}

/// Voting: the mean attention of the window's queries to each key (H, N).
HeadRows SnapKvFamily::window_attention(LayerObservations& observations) const {
    return {observations.window_attention(window(), lambda_, SoftmaxRange::visible).data(), n_tokens()};
}

/// Clustering: pools each row along the prefix, so that neighbors of an attended entry are kept, too.
Scores<float> SnapKvFamily::pooled(int layer, const HeadRows& attention) const {
    const std::vector<float> scores =
        reduce_scores_by_head<float>(context().shape, granularity(), reduction_, attention, n_tokens());
    // Pooling would spread or hide a NaN.
    require_valid_scores(layer, scores, rows(), n_prefix(), n_tokens());
    return pooled_prefix(pooling_, kernel_, scores, rows(), n_prefix(), n_tokens());
}

/// Selection: the best c = B - w prefix entries of each row, and the window.
Selection SnapKvFamily::select_from_scores(int layer, LayerScores scores) {
    require_valid_scores(layer, scores.scores, rows(), n_prefix(), n_tokens());
    Selection selection;
    selection.granularity = granularity();
    selection.rows = best_and_tail(scores.scores, head_budgets(layer, scores.scores), n_prefix(), n_tokens());
    selection.scores = std::move(scores.scores);
    return selection;
}

std::vector<int64_t> SnapKvFamily::head_budgets(int layer, const Scores<float>&) const {
    return std::vector<int64_t>(static_cast<size_t>(rows()), layer_budget(layer));
}

std::shared_ptr<const Scores<float>> SnapKvFamily::shared_scores(LayerObservations& observations) const {
    // The key contains no budget and no policy name, so that the whole family shares the scores.
    const std::string key = fmt::format("snapkv {} {} {} {} {} {}", window(), lambda_, static_cast<int>(reduction_),
                                        static_cast<int>(granularity()), static_cast<int>(pooling_), kernel_);
    return observations.shared<Scores<float>>(
        key, [&] { return pooled(observations.layer, window_attention(observations)); });
}

void SnapKvFamily::gather(LayerObservations& observations) {
    const auto scores = shared_scores(observations);
    if (leaves_scores()) scores->announce_ranking(n_tokens());
}

Selection SnapKvFamily::select(LayerObservations& observations) {
    return select_pooled(observations.layer, *shared_scores(observations));
}

Selection SnapKvFamily::select_pooled(int layer, Scores<float> scores) {
    return select_from_scores(layer, {granularity(), finished(layer, std::move(scores)), {}});
}

std::vector<Parameter> snapkv_family_parameters(std::vector<Parameter> own) {
    std::vector<Parameter> all{window_parameter(32), pooling_parameter("max"), kernel_parameter(), reduce_parameter(),
                               lambda_parameter(0.0)};
    for (Parameter& parameter : own) all.push_back(std::move(parameter));
    all.push_back(granularity_parameter());
    all.push_back(key_positions_parameter());
    return all;
}

Definition snapkv_definition() {
    return {
        .name = "snapkv",
        .title = "SnapKV",
        .paper =
            "Li et al., SnapKV: LLM Knows What You are Looking for Before Generation, NeurIPS 2024, "
            "arXiv:2404.14469",
        .summary =
            "Keeps the window's entries and, for each head, the prefix entries to which the window's queries attend "
            "most. Scores are pooled along the prompt.",
        .parameters = snapkv_family_parameters(),
        .create = make_policy<SnapKvFamily>,
    };
}

}  // namespace kvscope::policies
