#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/tables/table.h"
#include "trace/records.h"

namespace kvscope::analysis {

/// A mean over samples with its 95 % percentile bootstrap interval (10,000 resamples, always the same draws). Where all
/// samples are 0, or all are 1, resamples have no spread: then it is the exact interval of Clopper and Pearson, which
/// bounds the mean of scores from 0 to 1 as well.
struct BootstrapMean {
    double mean = 0, low = 0, high = 0;
};

/// @throws std::invalid_argument for no values
BootstrapMean bootstrap_mean(std::span<const double> values);

/// A policy setting at one budget, over all samples of a task.
struct TaskGroup {
    std::string policy;
    std::string setting;  ///< "snapkv:window=8"
    /// "128"; "12.5 %" where a share means another number in each sample; "bytes of 128" of a policy that keeps every
    /// token and may store as many bytes as 128 entries take; "all" for `full`
    std::string budget;
    std::vector<const trace::ResultRow*> answered;
    int n_failed = 0;
    struct Failure {
        std::string reason;
        std::vector<std::string> samples;
    };
    std::vector<Failure> failures = {};  ///< each reason once

    bool of_bytes = false;  ///< the budget is one of bytes

    std::vector<double> scores() const;
    /// Of the full cache, 0 to 1: the mean over the answered samples.
    double budget_share() const;
};

/// In the order of the first sample. They point into `rows`. @throws FigureError for no rows
std::vector<TaskGroup> task_groups(std::span<const trace::ResultRow> rows);

/// The groups' budgets but that of `full`, each once, ascending: entries, bytes, then shares. "all" where there are
/// none.
std::vector<std::string> budgets_of(std::span<const TaskGroup> groups);

/// A task's results, one row a policy setting and budget: samples, mean score with its interval, and how many failed.
/// `full` is the control and comes first. Budgets given as shares differ between samples and are shown as shares.
/// @throws FigureError for no rows
Table task_scores(std::span<const trace::ResultRow> rows);

/// The same with one row a policy setting and one column a budget, in per cent: "93.3 [86.7, 98.3]". What `full`
/// scored, whose budget is everything, stands in each column.
Table task_scores_by_budget(std::span<const trace::ResultRow> rows);

/// Why and in which samples runs failed, each reason once a policy setting and budget: "headkv @ 64 failed in all 60
/// samples: …", "cam @ 64 failed in 2 of 60 samples (niah-500-0.1-0, niah-500-0.1-2): …".
std::vector<std::string> task_failures(std::span<const trace::ResultRow> rows);

/// Whether the table means anything: at least 60 samples, the full cache right in 90 % of them, and `random` in at most
/// 10 % at its smallest budget. One sentence that says so, or what is missing; and whether it may be that answers were
/// given too few tokens, where most of the full cache's wrong ones break off.
std::string task_verdict(std::span<const trace::ResultRow> rows);

/// "Nothing is dropped where a prompt has no more tokens than the budget: 12 of 60 samples at 512.": what a score at a
/// budget says less by; empty where every prompt is longer than every budget of entries.
std::string task_untouched(std::span<const trace::ResultRow> rows);

/// "windows: 8 of aperturekv; 32 of h2o, snapkv": how many tokens the policies' windows are; empty where none has one.
std::string windows_in_words(const std::map<int64_t, std::set<std::string>>& policies_by_window);
/// The same of a task's results. Policies that this program does not know are left out.
std::string task_windows(std::span<const trace::ResultRow> rows);

}  // namespace kvscope::analysis
