#include "analysis/results/verdicts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/measures/result_row.h"
#include "analysis/runs/task_scores.h"

namespace kvscope::analysis {
namespace {

/// Relative deviation of a run's size from its budget that needs no remark: budgets are rounded to entries, and the
/// bytes of a cache include unused places at the end of each head.
constexpr double tolerance = 0.05;

/// The complete runs of a setting and budget, without those whose budget is at least the prompt's length.
struct GroupOfRuns {
    std::string label;  ///< "snapkv @ 64"
    bool of_bytes = false;
    size_t n = 0, n_equal_answers = 0;
    double budget = 0, kept = 0;          ///< sums over the runs, in entries per head
    double share = 0, of_bytes_held = 0;  ///< sums over the runs: requested share, share of full's bytes
    double tied_heads = 0;                ///< sum over the runs; NaN if unknown
};

std::vector<GroupOfRuns> compressed_runs(std::span<const TaskGroup> groups) {
    std::unordered_map<size_t, const trace::ResultRow*> full;  // by sample
    for (const TaskGroup& group : groups)
        for (size_t i = 0; group.is_full() && i < group.answered.size(); ++i)
            full[group.samples[i]] = group.answered[i];
    std::vector<GroupOfRuns> all;
    for (const TaskGroup& group : groups) {
        if (group.is_full()) continue;
        GroupOfRuns runs{.label = fmt::format("{} @ {}", group.label(), group.budget), .of_bytes = group.of_bytes};
        for (size_t i = 0; i < group.answered.size(); ++i) {
            const trace::ResultRow& row = *group.answered[i];
            const auto control = full.find(group.samples[i]);
            if (row.budget_fraction >= 1 || control == full.end()) continue;
            ++runs.n;
            runs.n_equal_answers += row.prediction == control->second->prediction ? 1 : 0;
            runs.budget += static_cast<double>(row.budget);
            runs.kept += row.kept_share / row.budget_fraction * static_cast<double>(row.budget);
            runs.share += row.budget_fraction;
            runs.of_bytes_held += share_of_full_bytes(std::span(control->second, 1), row);
            runs.tied_heads += row.tied_heads;
        }
        if (runs.n > 0) all.push_back(std::move(runs));
    }
    return all;
}

/// Whether the answers have scores. Without an answer, only assess_task_validity() says why there is none.
bool are_scored(std::span<const TaskGroup> groups) {
    const auto is_answered = [](const TaskGroup& group) { return !group.answered.empty(); };
    const auto has_score = [](const TaskGroup& group) {
        return std::ranges::any_of(group.answered, [](const auto* row) { return std::isfinite(row->score); });
    };
    return std::ranges::none_of(groups, is_answered) || std::ranges::any_of(groups, has_score);
}

bool deviates(double found, double wanted) { return std::abs(found - wanted) > tolerance * wanted; }

/// Adds "KIND: run; run and 2 more.", unless there are no runs.
void add_remark(std::vector<std::string>& remarks, const char* kind, std::vector<std::string> runs) {
    constexpr size_t most_named = 6;
    if (runs.empty()) return;
    const size_t left = runs.size() - std::min(runs.size(), most_named);
    runs.resize(runs.size() - left);
    remarks.push_back(fmt::format("{}: {}{}.", kind, fmt::join(runs, "; "),
                                  left > 0 ? fmt::format(" and {} more", left) : std::string()));
}

}  // namespace

std::vector<std::string> verdicts(std::span<const TaskGroup> groups, Advice advice) {
    std::vector<std::string> remarks;
    if (are_scored(groups)) remarks.push_back(assess_task_validity(groups, advice));
    remarks.push_back(describe_uncompressed_samples(groups));
    std::erase(remarks, "");
    std::vector<std::string> missed, not_smaller, equal, tied;
    for (const GroupOfRuns& runs : compressed_runs(groups)) {
        const auto n = static_cast<double>(runs.n);
        if (runs.of_bytes && deviates(runs.of_bytes_held, runs.share))
            missed.push_back(
                fmt::format("{} holds {:.1f} % of full's bytes", runs.label, 100 * runs.of_bytes_held / n));
        if (!runs.of_bytes && deviates(runs.kept, runs.budget))
            missed.push_back(fmt::format("{} keeps {:.1f} entries per head", runs.label, runs.kept / n));
        if (runs.of_bytes_held >= n)
            not_smaller.push_back(fmt::format("{} holds {:.1f} %", runs.label, 100 * runs.of_bytes_held / n));
        if (runs.n_equal_answers == runs.n) equal.push_back(fmt::format("{} (n = {})", runs.label, runs.n));
        if (runs.tied_heads > tolerance * n)
            tied.push_back(fmt::format("{} in {:.0f} % of heads", runs.label, 100 * runs.tied_heads / n));
    }
    add_remark(remarks, "Budgets not met", std::move(missed));
    add_remark(remarks, "No fewer bytes than full", std::move(not_smaller));
    add_remark(remarks, "The same answers as full", std::move(equal));
    add_remark(remarks, "Equal scores at the cut-off, so that ties decide what is kept", std::move(tied));
    return remarks;
}

std::string validity_of_tasks(std::span<const Result> results) {
    using Run = std::tuple<std::string, std::string, std::string, std::string, int64_t>;
    std::set<Run> known;  // sample, setting, budget, model, question_seen
    std::map<std::string, std::vector<trace::ResultRow>> tasks;
    for (const Result& result : results) {
        if (std::isnan(result.row.score)) continue;
        const Run run(result.sample, result.setting, result.budget, result.row.model, result.row.question_seen);
        if (known.insert(run).second) tasks[result.task].push_back(result.row);
    }
    std::string text;
    for (const auto& [task, rows] : tasks)
        text += fmt::format("{}{}{}", text.empty() ? "" : " ", tasks.size() > 1 ? task + ": " : "",
                            assess_task_validity(group_results_by_setting_and_budget(rows), Advice::hidden));
    return text;
}

}  // namespace kvscope::analysis
