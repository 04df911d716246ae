#include "app/papers/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <set>
#include <utility>

#include "analysis/results/sample_values.h"
#include "analysis/results/scalars.h"
#include "analysis/results/settings.h"
#include "analysis/runs/run_name.h"
#include "analysis/runs/task_scores.h"

namespace kvscope::papers {
namespace {

using analysis::Result;
using analysis::Runs;

constexpr double least_score_of_full = 0.9;  // below it, answers of policies are not wrong because of compression

/// Returns the runs of a policy setting; if no setting has the name, the runs of the policy.
Runs runs_called(const std::string& text, std::span<const Result* const> results) {
    const analysis::RunName name(text);
    Runs of_setting, of_policy;
    for (const Result* result : results) {
        const auto match = analysis::match_name(name, *result, {});
        if (match) (match->contains("policy") ? of_policy : of_setting).push_back(result);
    }
    return of_setting.empty() ? of_policy : of_setting;
}

/// Returns the results with the settings of the finding. @throws FigureError for an unknown setting
Runs results_where(const Finding& finding, std::span<const Result> results) {
    Runs chosen;
    for (const Result& result : results) chosen.push_back(&result);
    for (const auto& [name, value] : finding.where) {
        const analysis::Setting setting = analysis::setting_named(name, results);
        std::erase_if(chosen, [&, &wanted = value](const Result* one) { return setting.value(*one).label != wanted; });
    }
    return chosen;
}

/// Returns why the model's scores say nothing about policies, or an empty text.
std::string why_full_is_no_reference(const Runs& results) {
    Runs full;
    for (const Result* result : results) {
        if (result->is_full()) full.push_back(result);
        if (std::isfinite(result->row.score) && analysis::is_graded(result->row)) return "";
    }
    const auto score = analysis::estimate_of(analysis::values_of(full, analysis::scalar_named("score")),
                                             analysis::scalar_named("score"));
    if (!score) return "the full run has no scores";
    if (score->mean >= least_score_of_full) return "";
    return fmt::format("the model is right in only {:.0f} % of the samples with the full cache", 100 * score->mean);
}

Judgement unknown(Judgement judgement, std::string reason) {
    judgement.outcome = Judgement::Outcome::is_unknown;
    judgement.reason = std::move(reason);
    return judgement;
}

/// Removes the samples that only one of the two has.
void keep_common(analysis::ValuesBySample& a, analysis::ValuesBySample& b) {
    std::erase_if(a, [&](const auto& sample) { return !b.contains(sample.first); });
    std::erase_if(b, [&](const auto& sample) { return !a.contains(sample.first); });
}

bool are_equal(const analysis::ValuesBySample& a, const analysis::ValuesBySample& b) {
    return std::ranges::all_of(a,
                               [&](const auto& sample) { return sample.second.mean() == b.at(sample.first).mean(); });
}

/// Returns the full runs, which have no budget, and the runs with this budget, in any way of writing it.
Runs results_at(const std::string& budget, const Runs& results) {
    if (budget.empty()) return results;
    Runs chosen;
    for (const Result* result : results) {
        const analysis::RunName name(result->setting + " @ " + budget);
        if (result->is_full() || analysis::match_name(name, *result, {})) chosen.push_back(result);
    }
    return chosen;
}

std::set<std::string> budgets_of(const Runs& runs) {
    std::set<std::string> budgets;
    for (const Result* run : runs) budgets.insert(run->budget);
    return budgets;
}

bool are_full(const Runs& runs) { return std::ranges::all_of(runs, &Result::is_full); }

/// Keeps the runs at budgets that both have, so that a difference of budgets is no difference of policies. Runs with
/// one budget each, and full runs, are compared as they are. Returns whether any are left.
bool keep_common_budgets(Runs& a, Runs& b) {
    const std::set<std::string> of_a = budgets_of(a), of_b = budgets_of(b);
    if ((of_a.size() == 1 && of_b.size() == 1) || are_full(a) || are_full(b)) return true;
    std::erase_if(a, [&](const Result* run) { return !of_b.contains(run->budget); });
    std::erase_if(b, [&](const Result* run) { return !of_a.contains(run->budget); });
    return !a.empty();
}

Judgement judge_at(const std::string& budget, const Finding& finding, const Runs& all_results) {
    Judgement judgement;
    judgement.budget = budget;
    const Runs results = results_at(budget, all_results);
    Runs of = runs_called(finding.of, results), than = runs_called(finding.than, results);
    for (const auto& [runs, name] : {std::pair{&of, &finding.of}, std::pair{&than, &finding.than}})
        if (runs->empty())
            return unknown(judgement,
                           fmt::format("the trace has no run {}{}", *name, budget.empty() ? "" : " @ " + budget));
    if (!keep_common_budgets(of, than)) return unknown(judgement, "the runs have no budget in common");
    const analysis::Scalar& scalar = analysis::scalar_named(finding.number);
    auto a = analysis::values_of(of, scalar), b = analysis::values_of(than, scalar);
    keep_common(a, b);
    const auto difference = analysis::difference_of(a, b);
    if (!difference) return unknown(judgement, fmt::format("no sample has {} of both runs", scalar.name));
    judgement.of = analysis::estimate_of(a, scalar)->value;
    judgement.than = analysis::estimate_of(b, scalar)->value;
    judgement.difference = difference->estimate;
    if (difference->estimate.n_clusters < fewest_contexts)
        return unknown(judgement,
                       fmt::format("{} prompts of at least {}", difference->estimate.n_clusters, fewest_contexts));
    if (scalar.is_score()) {
        if (std::string reason = why_full_is_no_reference(results); !reason.empty()) return unknown(judgement, reason);
        if (are_equal(a, b)) return unknown(judgement, "both runs have the same score in every sample");
    }
    const auto [low, high] = difference->estimate.interval;
    const bool holds = finding.is_more ? low > 0 : high < 0;
    judgement.outcome = holds ? Judgement::Outcome::holds : Judgement::Outcome::does_not_hold;
    return judgement;
}

}  // namespace

std::vector<Judgement> judge(const Finding& finding, std::span<const Result> results) {
    if (!finding.cannot.empty()) return not_judged(finding, finding.cannot);
    try {
        const Runs chosen = results_where(finding, results);
        if (finding.budgets.empty()) return {judge_at("", finding, chosen)};
        std::vector<Judgement> judgements;
        for (const std::string& budget : finding.budgets) judgements.push_back(judge_at(budget, finding, chosen));
        return judgements;
    } catch (const std::exception& error) {
        return not_judged(finding, error.what());
    }
}

std::vector<Judgement> not_judged(const Finding& finding, std::string_view reason) {
    Judgement judgement;
    judgement.budget = fmt::format("{}", fmt::join(finding.budgets, ", "));
    return {unknown(judgement, std::string(reason))};
}

std::string_view in_words(Judgement::Outcome outcome) {
    switch (outcome) {
        case Judgement::Outcome::holds:
            return "holds";
        case Judgement::Outcome::does_not_hold:
            return "does not hold";
        case Judgement::Outcome::is_unknown:
            break;
    }
    return "cannot be judged";
}

}  // namespace kvscope::papers
