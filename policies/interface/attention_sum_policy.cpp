#include "policies/interface/attention_sum_policy.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "policies/interface/score_operations.h"

namespace kvscope::policies {

AttentionSumPolicy::AttentionSumPolicy(const ParameterValues& values)
    : ScoringPolicy(values), reduction_(reduction_of(values)) {}

Needs AttentionSumPolicy::needs() const {
    Needs needs;
    needs.attention_sums = true;
    return needs;
}

std::string AttentionSumPolicy::shared_as() const {
    return fmt::format("attention sums {} {}", static_cast<int>(reduction_), static_cast<int>(granularity()));
}

std::vector<float> AttentionSumPolicy::score(LayerObservations& observations) {
    const std::span<const float> sums = observations.attention_sums;
    if (static_cast<int64_t>(sums.size()) != context().shape.n_heads * context().n_tokens) {
        throw std::logic_error("the attention sums of layer " + std::to_string(observations.layer) +
                               " were not observed");
    }
    return reduce_scores_by_head<float>(context().shape, granularity(), reduction_, sums.data(), context().n_tokens);
}

}  // namespace kvscope::policies
