#include "app/gui/session/runs_alone.h"

#include <fmt/format.h>

#include "analysis/run_policy.h"
#include "analysis/run_style.h"
#include "analysis/tables/table_format.h"

namespace kvscope::gui {
namespace {

bool is_alike(const trace::RunAttributes& run, const trace::RunAttributes& of, Alone which) {
    if (which == Alone::policy) return run.policy == of.policy && run.parameters_json == of.parameters_json;
    if (run.budget_of != of.budget_of) return false;
    return of.budget_of ? run.budget_fraction == of.budget_fraction : run.budget == of.budget;
}

/// "snapkv:window=8"; the policy alone where this build does not know its parameters.
std::string policy_of(const trace::RunAttributes& run) {
    try {
        return analysis::run_policy(run).label();
    } catch (const std::exception&) {
        return run.policy;
    }
}

}  // namespace

void show_alone(Session& session, const RunKey& run, Alone which) {
    if (!session.exists(run)) return;
    const trace::RunAttributes of = session.attributes(run);
    for (const RunKey& key : session.all_runs()) {
        const trace::RunAttributes& other = session.attributes(key);
        const bool is_wanted = which == Alone::run ? key == run : is_alike(other, of, which);
        session.set_visible(key, is_wanted || other.policy == "full");
    }
}

void show_all(Session& session) {
    for (const RunKey& key : session.all_runs()) session.set_visible(key, true);
}

std::string name_of(const Session& session, const RunKey& run, Alone which) {
    const trace::RunAttributes& of = session.attributes(run);
    switch (which) {
        case Alone::run:
            return "Only " + analysis::run_label(of);
        case Alone::budget:
            return "Only budget " + (of.budget_of ? fmt::format("{:.4g} %", 100 * of.budget_fraction)
                                                  : analysis::format_count(of.budget));
        case Alone::policy:
            return policy_of(of) + " at all budgets";
    }
    return {};
}

}  // namespace kvscope::gui
