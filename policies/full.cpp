#include <numeric>

#include "policies/interface/policy.h"

namespace kvscope::policies {

namespace {

class Full : public Policy {
 public:
    explicit Full(const ParameterValues&) {}

    Needs needs() const override { return {}; }
    void begin(const RunContext& context) override { context_ = context; }
    Selection select(LayerObservations& observations) override { return select_from_scores(observations.layer, {}); }

    Selection select_from_scores(int, LayerScores) override {
        Selection selection;
        selection.rows.resize(static_cast<size_t>(context_.shape.n_kv_heads));
        for (std::vector<uint32_t>& row : selection.rows) {
            row.resize(static_cast<size_t>(context_.n_tokens));
            std::iota(row.begin(), row.end(), 0u);
        }
        return selection;
    }

 private:
    RunContext context_;
};

}  // namespace

Definition full_definition() {
    return {
        .name = "full",
        .title = "Full cache",
        .paper = "",
        .summary = "Keeps every entry at any budget. The full cache is the reference for all other policies.",
        .parameters = {},
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<Full>(values);
        },
    };
}

}  // namespace kvscope::policies
