#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/color_map.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/measures/five_numbers.h"
#include "analysis/measures/wrong_answer.h"
#include "analysis/results/result.h"
#include "analysis/results/results_figure.h"
#include "analysis/results/settings.h"
#include "analysis/runs/shown_runs.h"

namespace kvscope::analysis {
namespace {

constexpr double row_mm = 4.5;

/// The answers of a policy with a budget to samples that the full run answers rightly.
struct Group {
    std::string trace, policy;
    SettingValue budget;
    int64_t n = 0;
    int64_t n_wrong = 0;
    std::array<int64_t, cause::all.size()> counts{};  ///< wrong answers by cause
    std::vector<double> gaps{};                       ///< of the cause "ranked low"

    [[nodiscard]] std::string label() const {
        return fmt::format("{}{}{} @ {}", trace, trace.empty() ? "" : ": ", policy, budget.label);
    }
};

/// A cause that this version does not know, or none, is undetermined.
size_t place_of(const std::string& cause) {
    const auto* const found = std::ranges::find(cause::all, cause);
    return std::min(static_cast<size_t>(found - cause::all.begin()), cause::all.size() - 1);
}

/// Trace, sample, and whether policies saw the question.
using SampleOfFull = std::tuple<std::string, std::string, int64_t>;

SampleOfFull sample_of_full(const Result& result) { return {result.trace, result.sample, result.row.question_seen}; }

/// Identifies the samples that the full run answers rightly, also if the full run is not chosen.
std::set<SampleOfFull> rightly_answered(std::span<const TracePart> parts) {
    std::set<SampleOfFull> samples;
    for (const TracePart& part : parts)
        for (const Result& result : results_of_trace(*part.reader, part.name))
            if (result.is_full() && result.is_complete() && is_right(result.row))
                samples.insert(sample_of_full(result));
    return samples;
}

/// Returns a group for each policy and budget, in the order of the policies, then of the budgets.
/// @param are_all as of chosen_results()
std::vector<Group> read_groups(std::span<const TracePart> parts, bool are_all = true) {
    const std::vector<Result> results = chosen_results(parts, are_all);
    const auto has_score = [](const Result& result) { return !std::isnan(result.row.score); };
    if (std::ranges::none_of(results, has_score))
        throw NothingToShow(
            fmt::format("{}: the results have no scores; `kvscope eval` and prompts with answers have scores",
                        parts.front().reader->path().string()));
    const Setting policy = setting_named("policy", results, parts.front().options.setting_labels);
    const Setting budget = setting_named("budget", results);
    const Setting question = setting_named("question", results);
    const bool is_in_both_ways = asks_in_both_ways(results);
    const auto right = rightly_answered(parts);
    std::vector<Group> groups;
    for (const Result& result : results) {
        if (result.is_full()) continue;
        std::string name = policy.value(result).label;
        if (is_in_both_ways) name += ", " + question.value(result).label;
        const SettingValue of_budget = budget.value(result);
        auto group = std::ranges::find_if(groups, [&](const Group& one) {
            return one.trace == result.trace && one.policy == name && one.budget.label == of_budget.label;
        });
        if (group == groups.end())
            group = groups.insert(group, Group{.trace = result.trace, .policy = name, .budget = of_budget});
        if (!result.is_complete() || !right.contains(sample_of_full(result))) continue;
        ++group->n;
        if (is_right(result.row)) continue;
        ++group->n_wrong;
        ++group->counts[place_of(result.row.cause)];
        if (!std::isnan(result.row.cause_gap)) group->gaps.push_back(result.row.cause_gap);
    }
    const auto has_cause = [](const Result& result) { return !result.row.cause.empty(); };
    const bool any_wrong = std::ranges::any_of(groups, [](const Group& group) { return group.n_wrong > 0; });
    if (any_wrong && std::ranges::none_of(results, has_cause))
        throw NothingToShow(fmt::format(
            "{}: the results have no causes of wrong answers; `kvscope eval` records them, `kvscope run` does not",
            parts.front().reader->path().string()));
    if (groups.empty())
        throw NothingToShow(
            fmt::format("{}: the chosen results contain only the full run", parts.front().reader->path().string()));
    std::vector<std::pair<std::string, std::string>> order;
    for (const Group& group : groups) order.emplace_back(group.trace, group.policy);
    std::ranges::stable_sort(groups, {}, [&](const Group& group) {
        return std::pair(std::ranges::find(order, std::pair(group.trace, group.policy)) - order.begin(),
                         group.budget.place);
    });
    return groups;
}

Table table_of(const std::vector<Group>& groups) {
    Table table;
    table.name = "wrong-answers";
    table.title = "Wrong answers to samples that the full run answers rightly, by cause";
    const bool has_traces = groups.front().trace != "";
    if (has_traces) table.columns.push_back({"trace", "Trace", "", ColumnType::text});
    table.columns.insert(table.columns.end(), {{"policy", "Policy", "", ColumnType::text},
                                               {"budget", "Budget", "", ColumnType::text},
                                               {"n", "n", "", ColumnType::integer},
                                               {"wrong", "Wrong", "", ColumnType::integer}});
    for (const std::string_view cause : cause::all) {
        std::string name(cause), title = name;
        std::ranges::replace(name, ' ', '_');
        title.front() = static_cast<char>(title.front() - 'a' + 'A');
        table.columns.push_back({name, title, "", ColumnType::integer});
    }
    table.columns.push_back({"median_gap", "Median gap", "entries", ColumnType::real, 1});
    for (const Group& group : groups) {
        Row row;
        if (has_traces) row.cells.emplace_back(group.trace);
        row.cells.insert(row.cells.end(), {group.policy, group.budget.label, group.n, group.n_wrong});
        row.cells.insert(row.cells.end(), group.counts.begin(), group.counts.end());
        row.cells.push_back(group.gaps.empty() ? Cell() : Cell(five_numbers(group.gaps).median));
        table.rows.push_back(std::move(row));
    }
    return table;
}

Figure make(std::span<const TracePart> parts) {
    const std::vector<Group> groups = read_groups(parts);
    std::vector<std::string> labels, causes(cause::all.begin(), cause::all.end());
    int64_t most = 1;
    for (const Group& group : groups) {
        labels.push_back(group.label());
        most = std::max(most, std::ranges::max(group.counts));
    }
    Figure figure;
    figure.name = "wrong-answers";
    figure.title = "Causes of wrong answers";
    ColorScale scale;
    scale.title = "Wrong answers";
    scale.max = static_cast<double>(most);
    Panel panel;
    panel.x = name_axis("", causes, false);
    panel.y = name_axis("", labels, true);
    HeatMap map = map_of_means(groups.size(), causes.size());
    std::vector<TextLabel> counts;
    for (size_t row = 0; row < groups.size(); ++row)
        for (size_t column = 0; column < causes.size(); ++column) {
            const auto count = static_cast<double>(groups[row].counts[column]);
            map.values[row * causes.size() + column] = static_cast<float>(count);
            counts.push_back({static_cast<double>(column), static_cast<double>(row),
                              fmt::format("{}", groups[row].counts[column]),
                              ink_on(color_at(scale.map, count / scale.max))});
        }
    panel.shapes.emplace_back(std::move(map));
    for (TextLabel& label : counts) panel.shapes.emplace_back(std::move(label));
    figure.panels.push_back(std::move(panel));
    figure.color_scales.push_back(std::move(scale));
    figure.panel_height_mm = row_mm * static_cast<double>(groups.size());
    figure.width_mm = 150;
    figure.caption =
        "Number of wrong answers to samples that the full run answers rightly, by the first cause that holds. A token "
        "of the evidence is lost if the head that attends to it most drops it. The causes: each lost token received "
        "less than an equal share (1 / number of tokens) of the window's attention in every head; a ranking over all "
        "heads of a layer keeps the lost tokens; the head ranks a lost token too low; no token is lost, although other "
        "heads may drop it; or the cause is unknown.";
    complete_figure(figure, parts, {});
    return figure;
}

Table numbers(std::span<const TracePart> parts) { return table_of(read_groups(parts)); }

void check(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    (void)read_groups({&part, 1}, false);
}

}  // namespace

FigureDefinition wrong_answers_figure() {
    return of_results<make, numbers>({"wrong-answers",
                                      "Causes of wrong answers",
                                      "Causes of wrong answers to samples that the full run answers rightly",
                                      {{"runs", names_of_results_help}},
                                      check});
}

}  // namespace kvscope::analysis
