#include "analysis/runs/run_policy.h"

#include <fmt/format.h>

#include "analysis/drawing/figure_definition.h"
#include "analysis/runs/run_style.h"
#include "policies/registry/policy_from_record.h"

namespace kvscope::analysis {

policies::PolicySpec policy_of_run(const trace::RunAttributes& run) {
    try {
        return policies::policy_from_record(run.policy, run.parameters_json);
    } catch (const policies::ParameterError& error) {
        throw NothingToShow(fmt::format("{}: {}", run_label(run), error.what()));
    }
}

}  // namespace kvscope::analysis
