#include "policies/api/definition.h"

namespace kvscope::policies {

namespace {

class Full : public Policy {
 public:
    explicit Full(const ParameterValues&) {}

    void begin(const RunContext& context) override { context_ = context; }
    Selection select(LayerObservations&) override { return select_all_tokens(context_); }
    Selection select_from_scores(int, LayerScores) override { return select_all_tokens(context_); }

 private:
    RunContext context_;
};

}  // namespace

Definition full_definition() {
    return {
        .name = std::string(full_policy),
        .title = "Full cache",
        .summary = "Keeps every entry at any budget. The full cache is the reference for all other policies.",
        .parameters = {},
        .create = make_policy<Full>,
    };
}

}  // namespace kvscope::policies
