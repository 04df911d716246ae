#include "analysis/what_if/curve_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>

#include "analysis/drawing/figure_definition.h"
#include "analysis/runs/run_policy.h"
#include "analysis/runs/run_style.h"
#include "policies/registry/name_matching.h"

namespace kvscope::analysis {
namespace {

std::string label_of(const trace::RunAttributes& run, const policies::PolicySpec& spec, const std::string& over) {
    if (over == over_budget) return spec.label();
    policies::PolicySpec others = spec;
    for (const policies::Parameter& parameter : spec.definition->parameters)
        if (parameter.name == over) others.values.set_value(over, parameter.fallback);
    const policies::Budget budget{
        .is_share = has_budget_of_bytes(run), .count = run.budget, .share = run.budget_fraction};
    return policies::run_label(others, budget);
}

std::string shown_label(const std::vector<trace::RunAttributes>& runs, const CurveRuns& curve,
                        const std::string& over) {
    std::vector<std::string> names;
    for (const int index : curve.runs) {
        const std::string& given = runs.at(static_cast<size_t>(index)).given_label;
        std::string name = given.empty() ? curve.label : given;
        if (over == over_budget && !given.empty())
            if (const auto without = policies::label_without_budget(given); !without.empty()) name = without;
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string why_no_curve(const policies::PolicySpec& spec, const std::string& over) {
    if (!can_be_curve_axis(*spec.definition, over)) return fmt::format("it has no numeric parameter '{}'", over);
    if (over == over_budget && spec.own_share())
        return "a parameter sets how much is kept, so the budget has no effect";
    return {};
}

/// Returns the recorded values with another value of `over`, to test whether this parameter can be changed.
policies::ParameterValues changed(const CurveSource& source, const std::string& over) {
    policies::ParameterValues values = source.spec.values;
    if (over == over_budget) return values;
    for (const double x : values_to_try(source, over)) {
        values.set_number(over, x);
        if (values.value(over) != source.spec.values.value(over)) break;
    }
    return values;
}

}  // namespace

CurveChoice group_runs_into_curves(const std::vector<trace::RunAttributes>& runs, const std::vector<int>& shown,
                                   int64_t n_tokens, const std::string& over) {
    CurveChoice choice;
    std::map<std::string, size_t> places;
    for (const int index : shown) {
        const trace::RunAttributes& run = runs.at(static_cast<size_t>(index));
        if (run.is_full()) continue;
        policies::PolicySpec spec;
        try {
            spec = policy_of_run(run);
        } catch (const NothingToShow& unknown) {
            choice.left_out.push_back({run_label(run), unknown.what()});
            continue;
        }
        if (const std::string why = why_no_curve(spec, over); !why.empty()) {
            choice.left_out.push_back({run_label(run), run_label(run) + ": " + why});
            continue;
        }
        const std::string label = label_of(run, spec, over);
        const auto [found, is_new] = places.emplace(label, choice.curves.size());
        if (is_new) choice.curves.push_back({label, {}, {}, {spec, run.budget, n_tokens, {}}});
        CurveRuns& curve = choice.curves[found->second];
        curve.runs.push_back(index);
        const auto place = over == over_budget ? static_cast<double>(std::min(run.budget, n_tokens))
                                               : policies::numeric_value(spec.values.value(over));
        if (!place) continue;
        curve.places.emplace_back(*place, index);
        curve.source.recorded.push_back(*place);
    }
    for (CurveRuns& curve : choice.curves) curve.label = shown_label(runs, curve, over);
    return choice;
}

std::shared_ptr<const WhatIf> find_what_if_for_curve(const trace::Reader& reader, int prompt, const CurveRuns& curve,
                                                     const std::string& over) {
    std::exception_ptr refused;
    for (const int run : curve.runs) {
        try {
            auto what_if = std::make_shared<const WhatIf>(reader, prompt, run);
            const auto names = over == over_budget
                                   ? what_if->needs_prefill(what_if->recorded(), what_if->recorded_budget() + 1)
                                   : what_if->needs_prefill(changed(curve.source, over));
            if (names.empty()) return what_if;
            throw NothingToShow(
                fmt::format("{}: {} cannot be changed without a new prefill", curve.label, policies::joined(names)));
        } catch (const NothingToShow&) {
            if (!refused) refused = std::current_exception();
        }
    }
    std::rethrow_exception(refused);
}

}  // namespace kvscope::analysis
