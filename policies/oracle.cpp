#include "policies/bases/score_operations.h"
#include "policies/bases/scoring_policy.h"

namespace kvscope::policies {

namespace {

/// Upper bound for other policies, because they do not know the answer.
class Oracle : public ScoringPolicy {
 public:
    explicit Oracle(const ParameterValues& values) : ScoringPolicy(values), reduction_(reduction_of(values)) {}

    Needs needs() const override { return {.answer_attention = true}; }

 protected:
    std::vector<float> score(LayerObservations& observations) override {
        return reduce_scores_by_head<float>(context().shape, granularity(), reduction_,
                                            observations.answer_attention.data(), context().n_tokens);
    }

 private:
    kernels::HeadReduction reduction_;
};

}  // namespace

Definition oracle_definition() {
    return {
        .name = "oracle",
        .title = "Oracle",
        .paper =
            "Called M_gold in Where Matters More Than What: Decoding-aligned KV Cache Compression via Position-Aware "
            "Pseudo-Queries, anonymous, under review",
        .summary =
            "Keeps the entries that receive the most attention in the full cache's answer, summed over the answer's "
            "queries. With several questions on one context, the sum includes all answers. The oracle is an estimate "
            "of the best selection: other policies do not know the answer.",
        .parameters = {reduce_parameter(), granularity_parameter(), key_positions_parameter()},
        .create = make_policy<Oracle>,
    };
}

}  // namespace kvscope::policies
