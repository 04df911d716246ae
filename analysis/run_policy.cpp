#include "analysis/run_policy.h"

#include <fmt/format.h>

#include "analysis/figure_definition.h"
#include "analysis/run_style.h"
#include "policies/interface/recorded_policy.h"

namespace kvscope::analysis {

policies::PolicySpec run_policy(const trace::RunAttributes& run) {
    try {
        return policies::recorded_policy(run.policy, run.parameters_json);
    } catch (const policies::ParameterError& error) {
        throw NothingToShow(fmt::format("{}: {}", run_label(run), error.what()));
    }
}

}  // namespace kvscope::analysis
