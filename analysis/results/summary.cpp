#include "analysis/results/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/drawing/figure_definition.h"
#include "analysis/results/sample_values.h"
#include "analysis/runs/task_scores.h"
#include "common/counted.h"
#include "policies/registry/name_matching.h"

namespace kvscope::analysis {
namespace {

/// Rows, columns or blocks: the different values of settings, in order. Without a setting, there is one.
struct Grouping {
    std::vector<Setting> settings;
    bool full_has_all = false;  ///< Full runs belong to all values.
    std::vector<std::vector<SettingValue>> values;
    std::map<std::string, size_t> places;  ///< index of the values by key

    std::vector<SettingValue> values_of_run(const Result& run) const {
        std::vector<SettingValue> found;
        for (const Setting& setting : settings) found.push_back(setting.value(run));
        return found;
    }
    static std::string key(const std::vector<SettingValue>& values) {
        std::string text;
        for (const SettingValue& value : values) text += value.label + '\n';
        return text;
    }
    bool belongs_to_all(const Result& run) const { return full_has_all && run.is_full(); }
    /// Whether a run of the reference belongs to the i-th values, apart from the policy, its parameters and the
    /// settings that the reference names.
    bool matches_reference(size_t i, const Result& run, const std::set<std::string>& named) const {
        for (size_t k = 0; k < settings.size(); ++k) {
            const bool fits = settings[k].of_policy || named.contains(settings[k].name) ||
                              (settings[k].full_has_all && run.is_full()) ||
                              settings[k].value(run).label == values[i][k].label;
            if (!fits) return false;
        }
        return true;
    }
    std::vector<size_t> places_of(const Result& run) const {
        if (!belongs_to_all(run)) return {places.at(key(values_of_run(run)))};
        std::vector<size_t> all(values.size());
        std::iota(all.begin(), all.end(), size_t{0});
        return all;
    }
};

Grouping grouping_of(std::vector<Setting> settings, bool are_rows, std::span<const Result> results) {
    Grouping grouping;
    grouping.full_has_all = !are_rows && settings.size() == 1 && settings.front().full_has_all &&
                            !std::ranges::all_of(results, [](const Result& run) { return run.is_full(); });
    grouping.settings = std::move(settings);
    std::set<std::string> known;
    std::vector<std::map<std::string, size_t>> numbers(grouping.settings.size());  // of labels, by first appearance
    for (const Result& run : results) {
        if (grouping.belongs_to_all(run)) continue;
        std::vector<SettingValue> values = grouping.values_of_run(run);
        for (size_t i = 0; i < values.size(); ++i) numbers[i].try_emplace(values[i].label, numbers[i].size());
        if (known.insert(Grouping::key(values)).second) grouping.values.push_back(std::move(values));
    }
    std::ranges::sort(grouping.values, {}, [&](const std::vector<SettingValue>& values) {
        std::vector<std::pair<std::pair<int, double>, size_t>> order;
        for (size_t i = 0; i < values.size(); ++i) order.emplace_back(values[i].place, numbers[i].at(values[i].label));
        return order;
    });
    for (size_t i = 0; i < grouping.values.size(); ++i) grouping.places[Grouping::key(grouping.values[i])] = i;
    return grouping;
}

/// The runs with which others are compared.
struct Reference {
    std::set<const Result*> runs;
    std::set<std::string> named;  ///< settings that the name contains, so that all runs are compared with their values
    std::string label;            ///< "snapkv", "snapkv @ 64, question seen"
};

/// Finds the runs that a name means: those of a policy setting, or of a policy with one setting.
Reference reference_called(const std::string& text, std::span<const Result> results,
                           const std::map<std::string, std::string>& labels) {
    const RunName name(text);
    Reference of_setting, of_policy;
    std::set<std::string> settings, matched;
    std::string setting;
    for (const Result& run : results) {
        settings.insert(run.setting);
        auto named = match_name(name, run, labels);
        if (!named) continue;
        const bool is_by_policy = named->erase("policy") > 0;
        Reference& found = is_by_policy ? of_policy : of_setting;
        found.runs.insert(&run);
        found.named = *std::move(named);
        if (is_by_policy) matched.insert(run.setting);
        if (!is_by_policy || of_setting.runs.empty()) setting = run.setting;
    }
    Reference& found = of_setting.runs.empty() ? of_policy : of_setting;
    if (found.runs.empty() || (&found == &of_policy && matched.size() > 1)) {
        const std::vector<std::string> known(settings.begin(), settings.end());
        throw FigureError(fmt::format("no shown run is called '{}'.{} There are {}", text,
                                      policies::did_you_mean(text, known), policies::joined(known)));
    }
    const auto renamed = labels.find(setting);
    found.label = !found.named.empty() ? text : renamed == labels.end() ? setting : renamed->second;
    return found;
}

/// An origin of a run's numbers.
struct Origin {
    const char* name;
    std::string (*value)(const trace::ResultRow&);
};

constexpr size_t shown_digits = 12;  // of a hash or commit

constexpr Origin origins[] = {
    {"program", [](const trace::ResultRow& row) { return row.source.empty() ? "kvscope" : row.source.string(); }},
    {"device", [](const trace::ResultRow& row) { return row.device.string(); }},
    {"instructions", [](const trace::ResultRow& row) { return row.instructions.string(); }},
    {"commit", [](const trace::ResultRow& row) { return row.commit.string().substr(0, shown_digits); }},
};

constexpr std::string_view unknown = "unknown";

/// Numbers precede other texts and have the order of their values; "unknown" is the last.
struct ListOrder {
    static std::tuple<bool, bool, double, std::string_view> key(std::string_view value) {
        double number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        const bool is_number =
            error == std::errc() && std::isfinite(number) && (end == value.data() + value.size() || *end == '%');
        return {value == unknown, !is_number, is_number ? number : 0, value};
    }
    bool operator()(std::string_view a, std::string_view b) const { return key(a) < key(b); }
};

/// Values of a setting, each once. Empty texts, and the dash of an empty setting, are "unknown".
class Values {
 public:
    void add(std::string_view value) { values_.emplace(value.empty() || value == unknown_label ? unknown : value); }
    void add(const Values& others) { values_.insert(others.values_.begin(), others.values_.end()); }
    [[nodiscard]] bool differ() const { return values_.size() > 1; }
    [[nodiscard]] std::string text() const { return fmt::format("{}", fmt::join(values_, ", ")); }

 private:
    std::set<std::string, ListOrder> values_;
};

/// Returns the settings and origins in which the averaged or compared runs differ, except for the settings of rows,
/// columns and blocks. @param cells runs of each cell, and of its reference
/// @param is_cost whether times or memory are averaged, which also depend on the length
std::vector<std::string> mixed_settings(std::span<const Runs> cells, std::span<const Result> results,
                                        const std::set<std::string>& grouped, bool is_cost) {
    std::vector<std::string> mixed;
    const auto add = [&](const std::string& name, const Values& values) {
        if (values.differ()) mixed.push_back(fmt::format("{} ({})", name, values.text()));
    };
    // Means over several of these are no means of one run setting.
    constexpr std::array<std::string_view, 3> of_samples = {"length", "subset", "batch"};
    for (const char* name : {"policy", "budget", "task", "length", "subset", "batch"}) {
        const bool is_of_sample = std::ranges::find(of_samples, name) != of_samples.end();
        if (grouped.contains(name) || (is_of_sample && !is_cost)) continue;
        const Setting setting = setting_named(name, results);
        Values values;
        for (const Runs& runs : cells) {
            Values of_cell;
            for (const Result* run : runs) of_cell.add(setting.value(*run).label);
            if (of_cell.differ()) values.add(of_cell);
        }
        add(name, values);
    }
    for (const char* name : {"model", "dtype", "question"}) {
        if (grouped.contains(name)) continue;
        const Setting setting = setting_named(name, results);
        Values values;
        for (const Result& run : results) values.add(setting.value(run).label);
        add(name, values);
    }
    for (const Origin& origin : origins) {
        Values values;
        for (const Result& run : results) values.add(origin.value(run.row));
        add(origin.name, values);
    }
    std::map<std::pair<std::string, std::string>, Values> rules;  // of scores, by task and subset
    for (const Result& run : results) {
        const bool has_score = !std::isnan(run.row.score) || !run.row.scored_as.empty();
        if (has_score) rules[{run.task, run.row.subset}].add(run.row.scored_as);
    }
    std::map<std::string, Values> mixed_rules;  // by task
    for (const auto& [part, names] : rules)
        if (names.differ()) mixed_rules[part.first].add(names);
    for (const auto& [task, names] : mixed_rules) add(fmt::format("rules of the scores of {}", task), names);
    if (std::ranges::none_of(results, [](const Result& run) { return run.row.sample_hash.empty(); })) return mixed;
    std::map<std::string, Values> data;  // by task
    for (const Result& run : results) data[run.task].add(run.row.data_hash.string().substr(0, shown_digits));
    for (const auto& [task, hashes] : data) add(fmt::format("data of {}", task), hashes);
    return mixed;
}

std::optional<Setting> optional_setting(const std::string& name, std::span<const Result> results,
                                        const std::map<std::string, std::string>& labels) {
    if (name.empty()) return std::nullopt;
    if (name.find(',') != std::string::npos)
        throw FigureError(
            fmt::format("--columns and --blocks take one setting each, found '{}'; --rows takes several", name));
    return setting_named(name, results, labels);
}

std::vector<Setting> as_list(const std::optional<Setting>& setting) {
    return setting ? std::vector{*setting} : std::vector<Setting>();
}

std::vector<SettingValue> single_values(const Grouping& grouping) {
    std::vector<SettingValue> singles;
    for (const auto& values : grouping.values) singles.push_back(values.empty() ? SettingValue() : values.front());
    return singles;
}

/// Whether two cells with rows have different samples. Failed runs and unknown values count as well.
bool have_other_samples(std::span<const Runs* const> cells) {
    std::set<std::set<std::string_view>> found;
    for (const Runs* runs : cells) {
        if (runs->empty()) continue;
        std::set<std::string_view> samples;
        for (const Result* run : *runs) samples.insert(run->sample);
        found.insert(std::move(samples));
    }
    return found.size() > 1;
}

/// Returns "6 samples", or "5 to 6 samples".
std::string range_text(const std::set<size_t>& numbers, const char* noun) {
    if (numbers.size() < 2) return counted(numbers.empty() ? 0 : static_cast<int64_t>(*numbers.begin()), noun);
    return fmt::format("{} to {}", *numbers.begin(), counted(static_cast<int64_t>(*numbers.rbegin()), noun));
}

}  // namespace

std::optional<double> Summary::mean_of_columns(size_t block, size_t row) const {
    if (columns.size() < 2) return std::nullopt;
    double sum = 0;
    for (size_t column = 0; column < columns.size(); ++column) {
        const auto& estimate = cell(block, row, column).estimate;
        if (!estimate) return std::nullopt;
        sum += estimate->value;
    }
    return sum / static_cast<double>(columns.size());
}

std::string Summary::row_label(size_t row) const {
    std::string label;
    for (size_t i = 0; i < rows[row].size(); ++i) {
        const bool is_budget = row_settings[i].name == "budget";
        if (i > 0 && is_budget && rows[row][i].label == "all") continue;  // of the full run
        label += (i == 0 ? "" : is_budget ? " @ " : ", ") + rows[row][i].label;
    }
    return label;
}

std::string Summary::note() const {
    std::set<size_t> n, contexts;
    size_t n_failed = 0;
    bool has_intervals = false;
    for (const SummaryCell& cell : cells) {
        n_failed += cell.n_failed;
        if (!cell.estimate) continue;
        has_intervals |= !std::isnan(cell.estimate->interval.low);
        n.insert(cell.estimate->n);
        contexts.insert(cell.estimate->n_clusters);
    }
    const std::string intervals =
        !has_intervals       ? "; too few for intervals"
        : scalar->is_score() ? ", with 95 % intervals (bootstrap; Clopper-Pearson if all scores are 0 or all are 1)"
                             : ", with 95 % intervals";
    std::string text = fmt::format("{} over n = {} of {}{}.", scalar->is_cost() ? "Medians" : "Means",
                                   range_text(n, "sample"), range_text(contexts, "context"), intervals);
    if (n_failed > 0) text += fmt::format(" Failed: {}.", n_failed);
    if (!against.empty() && n_comparisons == 0) text += fmt::format(" No number can be compared with {}.", against);
    if (n_comparisons > 0)
        text += fmt::format(
            " ≈: not distinguishable from {} (paired exchange test, Holm-adjusted p above 0.05; "
            "comparisons: {}).",
            against, n_comparisons);
    const size_t most_contexts = contexts.empty() ? 0 : *contexts.rbegin();
    const auto are_too_many = [&](double p) { return static_cast<double>(n_comparisons) * p > 0.05; };
    constexpr size_t many_contexts = 10'000;
    if (are_too_many(smallest_p(most_contexts)))
        text += fmt::format(
            " No difference can be distinguished in {} comparisons with n = {}: use {}.", n_comparisons, most_contexts,
            are_too_many(smallest_p(many_contexts)) ? "fewer comparisons (--run, --columns)" : "more samples");
    if (has_other_samples) text += " Warning: the cells of a column have different samples.";
    if (!mixed.empty()) text += fmt::format(" Warning: the runs differ in {}.", fmt::join(mixed, "; "));
    if (!verdict.empty()) text += " " + verdict;
    return text;
}

Summary summarize(std::span<const Result> results, const SummaryRequest& request) {
    Summary summary;
    summary.scalar = &scalar_named(request.scalar);
    summary.in_percent = request.in_percent.value_or(summary.scalar->is_score());
    summary.extra_columns = request.extra_columns;
    for (const std::string& name : request.rows)
        summary.row_settings.push_back(setting_named(name, results, request.labels));
    summary.column_setting = optional_setting(request.columns, results, request.labels);
    summary.block_setting = optional_setting(request.blocks, results, request.labels);
    Reference reference;
    if (!request.against.empty() && summary.scalar->is_cost())
        throw FigureError(
            fmt::format("{} has medians, but --against compares means: choose another number, or omit "
                        "--against",
                        summary.scalar->name));
    if (!request.against.empty()) reference = reference_called(request.against, results, request.labels);
    summary.against = reference.label;
    const bool is_reference_full =
        std::ranges::all_of(reference.runs, [](const Result* run) { return run->is_full(); });

    const Grouping rows = grouping_of(summary.row_settings, true, results);
    const Grouping columns = grouping_of(as_list(summary.column_setting), false, results);
    const Grouping blocks = grouping_of(as_list(summary.block_setting), false, results);
    summary.rows = rows.values;
    summary.columns = single_values(columns);
    summary.blocks = single_values(blocks);

    std::vector<Runs> runs(rows.values.size() * columns.values.size() * blocks.values.size());
    const auto index = [&](size_t block, size_t row, size_t column) {
        return (block * rows.values.size() + row) * columns.values.size() + column;
    };
    for (const Result& run : results)
        for (const size_t block : blocks.places_of(run))
            for (const size_t row : rows.places_of(run))
                for (const size_t column : columns.places_of(run)) runs[index(block, row, column)].push_back(&run);

    // Rows that divide the samples have other samples by definition.
    const std::set<std::string_view> of_samples = {"task", "subset", "length", "depth", "batch"};
    const bool divide_samples = std::ranges::any_of(
        summary.row_settings, [&](const Setting& setting) { return of_samples.contains(setting.name); });
    for (size_t block = 0; block < blocks.values.size(); ++block)
        for (size_t column = 0; column < columns.values.size(); ++column) {
            std::vector<const Runs*> cells;
            for (size_t row = 0; row < rows.values.size(); ++row) cells.push_back(&runs[index(block, row, column)]);
            summary.has_other_samples |= !divide_samples && have_other_samples(cells);
        }
    if (summary.scalar->is_score()) summary.verdict = request.validity;
    std::vector<Runs> with_references = runs;
    summary.cells.resize(runs.size());
    std::vector<double> p(runs.size(), NAN);
    for (size_t block = 0; block < blocks.values.size(); ++block)
        for (size_t row = 0; row < rows.values.size(); ++row)
            for (size_t column = 0; column < columns.values.size(); ++column) {
                const size_t i = index(block, row, column);
                SummaryCell& cell = summary.cells[i];
                cell.has_rows = !runs[i].empty();
                if (!cell.has_rows) continue;
                cell.is_full = std::ranges::all_of(runs[i], [](const Result* run) { return run->is_full(); });
                cell.is_reference =
                    std::ranges::all_of(runs[i], [&](const Result* run) { return reference.runs.contains(run); });
                cell.n_failed = static_cast<size_t>(
                    std::ranges::count_if(runs[i], [](const Result* run) { return !run->is_complete(); }));
                const ValuesBySample values = values_of(runs[i], *summary.scalar);
                cell.estimate = estimate_of(values, *summary.scalar);
                if (cell.is_reference || reference.runs.empty()) continue;
                if ((cell.is_full || is_reference_full) && summary.scalar->is_trivial_of_full()) continue;
                Runs compared;
                for (const Result* run : reference.runs)
                    if (blocks.matches_reference(block, *run, reference.named) &&
                        rows.matches_reference(row, *run, reference.named) &&
                        columns.matches_reference(column, *run, reference.named))
                        compared.push_back(run);
                if (const auto paired = difference_of(values, values_of(compared, *summary.scalar))) {
                    cell.comparison = Comparison{*paired};
                    p[i] = paired->p;
                }
                with_references.push_back(std::move(compared));
            }
    const std::vector<double> adjusted = holm(p);
    for (size_t i = 0; i < p.size(); ++i) {
        if (!summary.cells[i].comparison) continue;
        summary.cells[i].comparison->adjusted_p = adjusted[i];
        ++summary.n_comparisons;
    }

    std::set<std::string> grouped = {request.columns, request.blocks};
    grouped.insert(request.rows.begin(), request.rows.end());
    summary.mixed = mixed_settings(with_references, results, grouped, summary.scalar->is_cost());
    return summary;
}

}  // namespace kvscope::analysis
