#include "policies/registry/reselect.h"

#include <string>
#include <utility>

#include "policies/api/policy_errors.h"
#include "policies/registry/validation.h"

namespace kvscope::policies {

std::vector<Selection> reselect(const Definition& definition, const ParameterValues& values, const RunContext& context,
                                std::vector<LayerScores> scores) {
    if (scores.size() != static_cast<size_t>(context.shape.n_layers)) {
        throw ScoreError("expected scores of " + std::to_string(context.shape.n_layers) + " layers, found " +
                         std::to_string(scores.size()));
    }
    const CreatedPolicy policy = definition.create(values);
    policy->begin(context);
    std::vector<Selection> selections;
    for (size_t layer = 0; layer < scores.size(); ++layer) {
        selections.push_back(policy->select_from_scores(static_cast<int>(layer), std::move(scores[layer])));
        require_valid_selection(definition.name, static_cast<int>(layer), context.shape, context.n_tokens,
                                selections.back());
        require_valid_storage(definition.name, static_cast<int>(layer), context.shape, selections.back());
    }
    return selections;
}

}  // namespace kvscope::policies
