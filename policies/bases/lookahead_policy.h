#pragma once

#include <optional>
#include <string>
#include <utility>

#include "policies/bases/snapkv_family.h"

namespace kvscope::policies {

/// Base of policies that generate tokens from a SnapKV cache and then rank the prefix by the queries of these tokens.
class LookaheadPolicy : public SnapKvFamily, public LooksAhead {
 public:
    explicit LookaheadPolicy(const ParameterValues& values)
        : SnapKvFamily(values), lookahead_(values.integer("lookahead")) {}

    [[nodiscard]] int64_t lookahead() const final { return lookahead_; }

    void gather(LayerObservations& observations) final {
        if (observations.n_appended() == 0) return SnapKvFamily::gather(observations);  // called before draft()
        gathered_ = scores_of(observations);
    }
    [[nodiscard]] Selection draft(LayerObservations& observations) final { return SnapKvFamily::select(observations); }
    [[nodiscard]] Selection select(LayerObservations& observations) final {
        Scores<float> scores = gathered_ ? *std::exchange(gathered_, std::nullopt) : scores_of(observations);
        return select_pooled(observations.layer, std::move(scores));
    }

 protected:
    /// Returns pooled() scores from the queries of the generated tokens.
    [[nodiscard]] virtual Scores<float> scores_of(LayerObservations& observations) const = 0;

 private:
    int64_t lookahead_;
    std::optional<Scores<float>> gathered_;
};

template <class P>
// NOLINTNEXTLINE(performance-unnecessary-value-param): moved
[[nodiscard]] Definition lookahead_q_cache_definition(std::string name, std::string title, std::string summary) {
    return {
        .name = std::move(name),
        .title = std::move(title),
        .paper =
            "Wang et al., Lookahead Q-Cache: Achieving More Consistent KV Cache Eviction via Pseudo Query, EMNLP 2025, "
            "arXiv:2505.20334",
        .summary = std::move(summary),
        .parameters = snapkv_family_parameters(
            {integer_parameter("lookahead", 8, {.low = 1, .high = 1 << 20},
                               "Number of tokens generated from the compressed cache. The queries of these tokens rank "
                               "the entries of the full cache.")}),
        .create = make_policy<P>,
        .scores_follow_budget = true,
    };
}

}  // namespace kvscope::policies
