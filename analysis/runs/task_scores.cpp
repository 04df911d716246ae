#include "analysis/runs/task_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/runs/row_settings.h"
#include "analysis/statistics/paired_difference.h"
#include "common/counted.h"
#include "common/hidden_question.h"
#include "kernels/threads/parallel.h"
#include "policies/registry/policy_from_record.h"
#include "policies/registry/registry.h"

namespace kvscope::analysis {
namespace {

std::string named(std::span<const std::string> samples) {
    constexpr size_t most = 10;
    const std::string names = fmt::format("{}", fmt::join(samples.first(std::min(samples.size(), most)), ", "));
    return samples.size() <= most ? names : fmt::format("{} and {} more", names, samples.size() - most);
}

std::string short_name(const std::string& setting) {
    const size_t colon = setting.find(':');
    if (colon == std::string::npos) return setting;
    std::string name = setting.substr(0, colon + 1);
    for (size_t begin = colon + 1; begin < setting.size();) {
        const size_t end = std::min(setting.find(',', begin), setting.size());
        const std::string parameter = setting.substr(begin, end - begin);
        const std::string value = parameter.substr(parameter.find('=') + 1);
        const bool is_path = value.find('/') != std::string::npos || value.ends_with(".json");
        if (begin > colon + 1) name += ',';
        name += is_path ? std::filesystem::path(value).stem().string() : parameter;
        begin = end + 1;
    }
    return name;
}

const std::string& context_of(const trace::ResultRow& row) {
    return row.context_hash.empty() ? row.sample_id : row.context_hash;
}

std::vector<double> scores_of(const TaskGroup& group) {
    std::vector<double> scores;
    scores.reserve(group.answered.size());
    for (const auto* row : group.answered) scores.push_back(row->score);
    return scores;
}

}  // namespace

Clusters TaskGroup::contexts() const {
    std::vector<std::string_view> names;
    names.reserve(answered.size());
    for (const auto* row : answered) names.push_back(context_of(*row));
    return Clusters(names);
}

Estimate TaskGroup::mean_score(const Resampling& resampling) const {
    return estimate_score(scores_of(*this), contexts(), resampling);
}

std::vector<std::optional<Estimate>> mean_scores(std::span<const TaskGroup> groups) {
    std::vector<std::optional<Estimate>> scores(groups.size());
    if (groups.empty()) return scores;
    const TaskGroup& first = groups.front();
    const Clusters contexts = first.contexts();  // mostly those of all groups
    int64_t n_draws = 0;
    for (const TaskGroup& group : groups)
        n_draws += static_cast<int64_t>(group.answered.size()) * Resampling().n_resamples;
    kernels::parallel_for(static_cast<int64_t>(groups.size()), n_draws, [&](int64_t i) {
        const TaskGroup& group = groups[static_cast<size_t>(i)];
        if (group.answered.empty()) return;
        scores[static_cast<size_t>(i)] =
            group.samples == first.samples ? estimate_score(scores_of(group), contexts) : group.mean_score();
    });
    return scores;
}

std::string TaskGroup::distinct(const std::string& name) const {
    std::string text = name;
    if (!model.empty()) text += ", " + model;
    if (question_seen) text += *question_seen ? seen_question_suffix : hidden_question_suffix;
    return text;
}

GroupNames names_of(const TaskGroup& group, const FigureOptions& options) {
    const auto renamed = options.setting_labels.find(group.setting);
    if (renamed == options.setting_labels.end()) return {group.label(), group.distinct(short_name(group.setting))};
    return {group.distinct(renamed->second), group.distinct(renamed->second)};
}

bool is_chosen(ChosenRuns& chosen, const TaskGroup& group, const FigureOptions& options) {
    DescribedRun run{group.policy, {group.setting, short_name(group.setting)}, group.budget};
    if (const auto renamed = options.setting_labels.find(group.setting); renamed != options.setting_labels.end())
        run.settings.push_back(renamed->second);
    if (!group.model.empty()) run.others.emplace_back("model", group.model);
    if (group.question_seen)
        run.others.emplace_back("question",
                                (*group.question_seen ? seen_question_suffix : hidden_question_suffix).substr(2));
    return chosen.contains(group.label(), group.budget,
                           [&](const RunName& name) { return name.match(run).has_value(); });
}

std::string score_text(const Estimate& score, std::string (*number_text)(double)) {
    if (std::isnan(score.interval.low)) return number_text(score.mean);
    return fmt::format("{} [{}, {}]", number_text(score.mean), number_text(score.interval.low),
                       number_text(score.interval.high));
}

double TaskGroup::budget_share() const {
    double sum = 0;
    for (const auto* row : answered) sum += std::min(row->budget_fraction, 1.0);
    return sum / static_cast<double>(answered.size());
}

std::vector<TaskGroup> group_results_by_setting_and_budget(std::span<const trace::ResultRow> rows) {
    return group_results_by_setting_and_budget(rows, settings_of_rows(rows));
}

std::vector<TaskGroup> group_results_by_setting_and_budget(std::span<const trace::ResultRow> rows,
                                                           const SettingsOfRows& settings) {
    if (rows.empty()) throw FigureError("there are no results, because no sample has finished");
    std::vector<TaskGroup> groups;
    for (size_t i = 0; i < rows.size(); ++i) {
        const trace::ResultRow& row = rows[i];
        const auto [sample, number] = settings.rows[i];
        if (number == groups.size()) {  // groups are numbered in the order of their first rows
            const RowSettings& of = settings.of(i);
            groups.push_back({row.policy, of.setting, of.budget, of.of_bytes, of.question_seen, of.model});
        }
        TaskGroup& group = groups[number];
        if (row.status == trace::schema::run::status_complete) {
            group.answered.push_back(&row);
            group.samples.push_back(sample);
        } else {
            ++group.n_failed;
            const std::string& status = row.status;
            const size_t colon = status.find(": ");
            const std::string reason = colon == std::string::npos ? "unknown reason" : status.substr(colon + 2);
            const auto known = std::find_if(group.failures.begin(), group.failures.end(),
                                            [&](const auto& other) { return other.reason == reason; });
            auto& failure = known == group.failures.end() ? group.failures.emplace_back() : *known;
            failure.reason = reason;
            failure.samples.push_back(row.sample_id);
        }
    }
    return groups;
}

std::vector<std::string> distinct_budgets(std::span<const TaskGroup> groups) {
    std::vector<std::string> budgets;
    for (const auto& group : groups)
        if (!group.is_full()) budgets.push_back(group.budget);
    std::ranges::sort(budgets, {}, budget_place);
    budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
    if (budgets.empty()) budgets.emplace_back("all");
    return budgets;
}

bool has_scores(std::span<const trace::ResultRow> rows) {
    return std::ranges::any_of(rows, [](const trace::ResultRow& row) { return std::isfinite(row.score); });
}

bool is_graded(const trace::ResultRow& row) { return row.metric.string().ends_with("_score"); }

Table task_scores(std::span<const TaskGroup> groups) {
    Table table{"task_scores",
                "Scores by policy and budget",
                {{"policy", "Policy", ""},
                 {"budget", "Budget", ""},
                 {"samples", "Samples", "", ColumnType::integer},
                 {"score", "Score", "", ColumnType::real, 3, Best::highest},
                 {"low", "95 % from", "", ColumnType::real},
                 {"high", "to", "", ColumnType::real},
                 {"failed", "Failed", "", ColumnType::integer},
                 {"budget_of", "Budget of", ""}},
                {}};
    const auto scores = mean_scores(groups);
    for (size_t i = 0; i < groups.size(); ++i) {
        const TaskGroup& group = groups[i];
        Row row{{group.label(),
                 group.budget,
                 static_cast<int64_t>(group.answered.size()),
                 {},
                 {},
                 {},
                 int64_t{group.n_failed},
                 group.is_full() ? Cell() : Cell(std::string(group.of_bytes ? "bytes" : "entries"))},
                group.is_full(),
                group.budget};
        if (const auto& score = scores[i]) {
            row.cells[3] = score->mean;
            row.cells[4] = known_cell(score->interval.low);
            row.cells[5] = known_cell(score->interval.high);
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

Table task_scores_by_budget(std::span<const TaskGroup> groups) {
    const auto scores = mean_scores(groups);
    const auto budgets = distinct_budgets(groups);
    Table table{"task_scores", "Mean scores in per cent, with 95 % intervals", {{"policy", "Policy", ""}}, {}};
    for (const auto& budget : budgets)
        table.columns.push_back({budget == "all" ? budget : "budget_" + budget, budget, ""});
    std::map<std::string, size_t> rows_of;
    for (size_t i = 0; i < groups.size(); ++i) {
        const TaskGroup& group = groups[i];
        const auto [place, is_new] = rows_of.try_emplace(group.label(), table.rows.size());
        if (is_new) {
            table.rows.push_back({{group.label()}, group.is_full()});
            table.rows.back().cells.resize(table.columns.size());
        }
        const std::string text =
            scores[i] ? score_text(*scores[i], [](double score) { return fmt::format("{:.1f}", 100 * score); })
                      : "failed";
        auto& cells = table.rows[place->second].cells;
        for (size_t column = 0; column < budgets.size(); ++column)
            if (group.is_full() || group.budget == budgets[column]) cells[column + 1] = text;
    }
    return table;
}

std::vector<std::string> describe_failed_runs(std::span<const TaskGroup> groups) {
    std::vector<std::string> failures;
    for (const TaskGroup& group : groups) {
        const auto n_samples = static_cast<size_t>(group.n_failed) + group.answered.size();
        for (const auto& [reason, samples] : group.failures) {
            const std::string which =
                samples.size() == n_samples
                    ? (n_samples == 1 ? "the only sample" : fmt::format("all {} samples", n_samples))
                    : fmt::format("{} of {} samples ({})", samples.size(), n_samples, named(samples));
            failures.push_back(fmt::format("{} @ {} failed in {}: {}", group.label(), group.budget, which, reason));
        }
    }
    return failures;
}

namespace {

/// A reason why a table cannot compare policies. The advice names the remedy, and follows the text of the reason.
struct Obstacle {
    std::string reason, advice;

    [[nodiscard]] std::string text(Advice shown) const { return reason + (shown == Advice::shown ? advice : "."); }
};

/// Whether an answer stops in mid-sentence, probably because too few tokens were allowed.
bool breaks_off(const std::string& answer) {
    const size_t last = answer.find_last_not_of(" \t\r\n\"')*`");
    return last != std::string::npos && std::string_view(".!?:;,").find(answer[last]) == std::string_view::npos;
}

Obstacle wrong_answers(const TaskGroup& full, double mean) {
    Obstacle obstacle{fmt::format("The full run answers only {:.1f} % correctly", 100 * mean),
                      "; below 90 %, scores mostly measure the model."};
    const auto n_wrong =
        std::count_if(full.answered.begin(), full.answered.end(), [](const auto* row) { return row->score < 0.5; });
    const auto n_broken = std::count_if(full.answered.begin(), full.answered.end(), [](const auto* row) {
        // The option -n is kvscope's.
        return row->source.empty() && row->score < 0.5 && breaks_off(row->prediction);
    });
    if (2 * n_broken > n_wrong)
        obstacle.advice +=
            fmt::format(" {} in mid-sentence: allow more tokens with -n.",
                        n_wrong == 1          ? "Its only wrong answer stops"
                        : n_broken == n_wrong ? fmt::format("All its {} wrong answers stop", n_wrong)
                                              : fmt::format("{} of its {} wrong answers stop", n_broken, n_wrong));
    return obstacle;
}

/// Whether `a` scores more than `b` in the samples that both answered, with an interval that excludes 0.
bool is_better(const TaskGroup& a, const TaskGroup& b) {
    const auto name = [](const trace::ResultRow& row) { return std::pair(row.sample_id, row.question_seen); };
    std::map<std::pair<std::string, int64_t>, double> others;
    for (const auto* row : b.answered) others[name(*row)] = row->score;
    std::vector<double> scores, scores_of_b;
    std::vector<std::string_view> contexts;
    for (const auto* row : a.answered) {
        const auto other = others.find(name(*row));
        if (other == others.end()) continue;
        scores.push_back(row->score);
        scores_of_b.push_back(other->second);
        contexts.push_back(context_of(*row));
    }
    return !scores.empty() && paired_difference(scores, scores_of_b, Clusters(contexts)).estimate.interval.low > 0;
}

/// What comparable groups say about the comparison of policies.
struct Validity {
    std::vector<Obstacle> obstacles;
    std::string numbers;  ///< the sentence that is printed if there are no obstacles
};

Validity validity_of_comparable(std::span<const TaskGroup> groups) {
    // No model reaches 90 % of a graded score such as F1.
    const bool are_graded = std::ranges::any_of(groups, [](const TaskGroup& group) {
        return std::ranges::any_of(group.answered, [](const auto* row) { return is_graded(*row); });
    });
    const auto mean = [](const TaskGroup& group) { return group.mean_score({.n_resamples = 1}).mean; };
    const TaskGroup* full = nullptr;
    const TaskGroup* random = nullptr;
    for (const auto& group : groups) {
        if (group.answered.empty()) continue;
        if (group.is_full()) full = &group;
        if (group.policy == "random" && (!random || group.answered.front()->budget < random->answered.front()->budget))
            random = &group;
    }
    if (!full) return {{{"The full run has no answers, so that policies cannot be compared with it", "."}}, {}};
    Validity validity;
    auto& obstacles = validity.obstacles;
    constexpr size_t fewest = 60;
    if (full->answered.size() < fewest)
        obstacles.push_back({fmt::format("{}: only large differences can be found",
                                         counted(static_cast<int64_t>(full->answered.size()), "sample")),
                             fmt::format("; use at least {}.", fewest)});
    if (!are_graded && mean(*full) < 0.9) obstacles.push_back(wrong_answers(*full, mean(*full)));
    if (!random) {
        obstacles.push_back({"The chance level is unknown", "; add the policy `random`."});
        return validity;
    }
    if (are_graded) {
        if (!is_better(*full, *random))
            obstacles.push_back(
                {fmt::format(
                     "The full run's score of {:.1f} % is not distinguishable from the {:.1f} % of random at {}",
                     100 * mean(*full), 100 * mean(*random), random->budget),
                 "."});
    } else if (mean(*random) > 0.1 && mean(*full) >= 0.9) {
        obstacles.push_back({fmt::format("The task is too easy: random at {} is right in {:.1f} %", random->budget,
                                         100 * mean(*random)),
                             "; use a task with at most 10 %."});
    }
    validity.numbers = fmt::format("Usable: {} samples; full {} {:.1f} %, random at {} {} {:.1f} %.",
                                   full->answered.size(), are_graded ? "scores" : "is right in", 100 * mean(*full),
                                   random->budget, are_graded ? "scores" : "in", 100 * mean(*random));
    return validity;
}

/// Divides groups by model, and by whether policies see the question. The keys are empty or "model, question seen".
std::map<std::string, std::vector<TaskGroup>> comparable_groups(std::span<const TaskGroup> groups) {
    std::map<std::string, std::vector<TaskGroup>> parts;
    for (const TaskGroup& group : groups) {
        const std::string key = group.distinct("");
        parts[key.empty() ? key : key.substr(2)].push_back(group);
    }
    return parts;
}

}  // namespace

std::string first_obstacle_to_comparison(std::span<const TaskGroup> groups) {
    if (comparable_groups(groups).size() != 1) return {};
    const std::vector<Obstacle> obstacles = validity_of_comparable(groups).obstacles;
    if (obstacles.empty()) return {};
    std::string first = obstacles.front().reason;
    first.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(first.front())));
    return first;
}

std::string assess_task_validity(std::span<const TaskGroup> groups, Advice advice) {
    std::vector<std::string> texts;
    for (const auto& [name, comparable] : comparable_groups(groups)) {
        const Validity validity = validity_of_comparable(comparable);
        if (!name.empty()) texts.push_back(name + ":");
        if (validity.obstacles.empty()) texts.push_back(validity.numbers);
        for (const Obstacle& obstacle : validity.obstacles) texts.push_back(obstacle.text(advice));
    }
    return fmt::format("{}", fmt::join(texts, " "));
}

std::string describe_uncompressed_samples(std::span<const TaskGroup> groups) {
    std::map<std::string, std::pair<size_t, size_t>>
        by_budget;  // by budget: number of samples without dropped tokens, number of all samples
    std::vector<std::string> budgets;
    for (const TaskGroup& group : groups) {
        if (group.is_full() || group.budget.ends_with('%')) continue;
        const auto [place, is_new] = by_budget.try_emplace(group.budget);
        if (is_new) budgets.push_back(group.budget);
        const auto n = std::count_if(group.answered.begin(), group.answered.end(),
                                     [](const auto* row) { return row->budget_fraction >= 1; });
        auto& [untouched, all] = place->second;
        untouched = std::max(untouched, static_cast<size_t>(n));
        all = std::max(all, group.answered.size());
    }
    std::string text;
    for (const std::string& budget : budgets) {
        const auto [untouched, all] = by_budget.at(budget);
        if (untouched > 0)
            text += fmt::format("{}{} of {} samples at {}", text.empty() ? "" : ", ", untouched, all, budget);
    }
    return text.empty()
               ? text
               : fmt::format("Nothing is dropped from a prompt with no more tokens than the budget: {}.", text);
}

std::string windows_in_words(const WindowsOfPolicies& windows_of_policies) {
    std::map<int64_t, std::set<std::string>> names_by_window;
    for (const auto& [policy, settings_by_window] : windows_of_policies)
        for (const auto& [window, settings] : settings_by_window) {
            if (settings_by_window.size() == 1)
                names_by_window[window].insert(policy);
            else
                names_by_window[window].insert(settings.begin(), settings.end());
        }
    std::string text;
    for (const auto& [window, names] : names_by_window)
        text += fmt::format("{} {}: {}", text.empty() ? "window of" : "; of", counted(window, "query"),
                            fmt::join(names, ", "));
    return text;
}

std::string describe_policy_windows(std::span<const trace::ResultRow> rows) {
    WindowsOfPolicies windows;
    for (const auto& row : rows) {
        try {
            const auto spec = policies::policy_from_record(row.policy, row.parameters_json);
            if (spec.values.has("window")) windows[row.policy][spec.values.integer("window")].insert(spec.label());
        } catch (const policies::ParameterError&) {
            // This version does not know the policy or one of its parameters.
        }
    }
    return windows_in_words(windows);
}

}  // namespace kvscope::analysis
