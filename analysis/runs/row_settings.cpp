#include "analysis/runs/row_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/bounded_json.h"
#include "policies/api/budget.h"
#include "policies/registry/policy_from_record.h"

namespace kvscope::analysis {
namespace {

constexpr std::string_view bytes_prefix = "bytes of ";

/// A setting's budget as the user gave it: a number of entries, or a share if the entries differ by sample. Traces of
/// earlier versions lack the requested budget, so it is derived from the recorded entries.
struct AskedBudget {
    std::optional<policies::Budget> requested;
    bool of_bytes = false;  ///< The policy records the share itself, not the resulting entries.
    std::set<int64_t> entries;
    std::set<double> fractions;
    double low = 0, high = 1;  ///< shares that round to the recorded entries in all samples

    void add(const trace::ResultRow& row) {
        if (row.budget <= 0) return;  // a run that failed before its budget was resolved
        entries.insert(row.budget);
        fractions.insert(row.budget_fraction);
        if (!(row.budget_fraction > 0)) return;
        const double half = 0.5 * row.budget_fraction / static_cast<double>(std::max<int64_t>(row.budget, 1));
        low = std::max(low, row.budget_fraction - half);
        high = std::min(high, row.budget_fraction + half);
    }
    /// Whether the share has so few decimals that a user probably gave it.
    bool is_given_share() const {
        if (fractions.empty()) return false;
        const double scaled = *fractions.begin() * 1e4;
        return of_bytes && fractions.size() == 1 && std::abs(scaled - std::round(scaled)) < 1e-7;
    }
    bool is_share() const { return requested ? requested->is_share : is_given_share() || entries.size() > 1; }
    bool holds(double share) const { return low <= share + 1e-9 && share <= high + 1e-9; }
    double share() const {
        if (requested) return requested->share;
        if (is_given_share()) return *fractions.begin();
        for (const double digits : {1e2, 1e3, 1e4, 1e5})
            if (const double rounded = std::round((low + high) / 2 * digits) / digits; holds(rounded)) return rounded;
        return (low + high) / 2;
    }
};

/// Formats entries as a number and shares in per cent. Entries that match one of `shares` are shown as this share.
std::string budget_text(const AskedBudget& asked, const std::vector<double>& shares) {
    if (!asked.requested && !asked.is_share())
        for (const double share : shares)
            if (asked.holds(share)) return policies::share_label(share);
    if (asked.is_share()) return policies::share_label(asked.share());
    if (!asked.requested && asked.entries.empty()) return "unknown";
    return fmt::format("{}{}", asked.of_bytes ? bytes_prefix : "",
                       asked.requested ? asked.requested->count : *asked.entries.begin());
}

std::optional<policies::Budget> budget_requested_in(const trace::ResultRow& row) {
    try {
        if (!row.requested_budget.empty()) return policies::parse_budget(row.requested_budget);
    } catch (const policies::BudgetError&) {
        // A later version or another program wrote the text.
    }
    return std::nullopt;
}

struct RecordedSetting {
    std::string label;
    bool of_bytes = false;
};

/// Returns a text parameter in a label: "window_size=64,kernel_size=5" for the press "SnapKVPress(window_size=64,
/// kernel_size=5)", whose name is the policy's; "name=text" for others. Spaces after commas are removed.
std::string text_parameter(const std::string& name, std::string text) {
    for (size_t at = text.find(", "); at != std::string::npos; at = text.find(", ", at)) text.erase(at + 1, 1);
    if (name != "press") return fmt::format("{}={}", name, text);
    const size_t open = text.find('(');
    return open == std::string::npos || !text.ends_with(')') ? text : text.substr(open + 1, text.size() - open - 2);
}

/// Returns a setting of another program, whose policies may differ from those with equal names:
/// "kvzap_mlp:threshold=-4 (kvpress)".
std::string setting_of_other_program(const trace::ResultRow& row) {
    std::string text = row.policy;
    const nlohmann::json parameters = bounded_json::parse_or_discard(row.parameters_json);
    if (parameters.is_object()) {
        char separator = ':';
        for (const auto& [name, value] : parameters.items()) {
            const std::string parameter = value.is_number()   ? fmt::format("{}={}", name, value.get<double>())
                                          : value.is_string() ? text_parameter(name, value.get<std::string>())
                                                              : "";
            if (parameter.empty() || parameter == row.policy) continue;
            text += std::exchange(separator, ',') + parameter;
        }
    }
    return fmt::format("{} ({})", text, row.source);
}

RecordedSetting recorded_setting(const trace::ResultRow& row) {
    if (!row.source.empty()) return {setting_of_other_program(row)};
    try {
        const policies::PolicySpec spec = policies::policy_from_record(row.policy, row.parameters_json);
        return {spec.label(), spec.definition->budget_of == policies::BudgetOf::bytes};
    } catch (const policies::ParameterError&) {
        return {row.policy};
    }
}

/// Rows of one setting and budget.
struct RowGroup {
    bool is_full = false;
    AskedBudget asked;
};

/// Whether two rows have the same values in the columns that determine their group.
bool have_equal_settings(const trace::ResultRow& a, const trace::ResultRow& b) {
    return a.policy == b.policy && a.parameters_json == b.parameters_json && a.source == b.source &&
           a.requested_budget == b.requested_budget && a.question_seen == b.question_seen && a.model == b.model;
}

}  // namespace

SettingsOfRows settings_of_rows(std::span<const trace::ResultRow> rows) {
    // By policy, parameters and source
    std::map<std::tuple<std::string, std::string, std::string>, RecordedSetting> known;
    // Setting, requested budget, number among equal ones, question_seen, model
    using Key = std::tuple<std::string, std::string, int, std::optional<bool>, std::string>;
    std::map<Key, size_t> places;                                // indices of groups
    std::map<std::pair<std::string, std::string>, int> counted;  // rows of the sample so far
    std::vector<RowGroup> groups;
    SettingsOfRows all;
    all.rows.reserve(rows.size());
    const trace::ResultRow* before = nullptr;
    size_t n_samples = 0, sample_begin = 0, previous_begin = 0;
    bool follows = false;  // whether the sample's rows so far have the settings of the previous sample's rows
    const auto is_known = [&](int64_t seen) {
        return std::ranges::find(rows, seen, &trace::ResultRow::question_seen) != rows.end();
    };
    const bool asks_in_both_ways = is_known(0) && is_known(1);
    const bool has_models =
        std::ranges::any_of(rows, [&](const trace::ResultRow& row) { return row.model != rows.front().model; });
    for (const trace::ResultRow& row : rows) {
        const auto question_seen =
            asks_in_both_ways && row.question_seen >= 0 ? std::optional(row.question_seen != 0) : std::nullopt;
        const bool is_full = row.policy == full_policy;
        // Imported results can contain a sample's full run several times.
        const bool is_repeated = before && row.repeat > 0 && before->policy == row.policy;
        if (!before || (is_full && !is_repeated) || before->sample_id != row.sample_id || before->model != row.model) {
            ++n_samples;
            counted.clear();
            previous_begin = std::exchange(sample_begin, all.rows.size());
            follows = n_samples > 1;
        }
        before = &row;
        const size_t place_in_sample = all.rows.size() - sample_begin;
        if (const size_t twin = previous_begin + place_in_sample;
            follows && twin < sample_begin && have_equal_settings(row, rows[twin])) {
            groups[all.rows[twin].group].asked.add(row);
            all.rows.push_back({n_samples - 1, all.rows[twin].group});
            continue;
        }
        if (std::exchange(follows, false))
            for (size_t i = sample_begin; i < all.rows.size(); ++i)
                ++counted[{all.of(i).setting, rows[i].requested_budget}];
        const auto [recorded, is_new] = known.try_emplace({row.policy, row.parameters_json, row.source});
        if (is_new) recorded->second = recorded_setting(row);
        const auto& [setting, of_bytes] = recorded->second;
        const int nth = counted[{setting, row.requested_budget}]++;
        const std::string model = !has_models ? "" : row.model.empty() ? "unknown model" : row.model;
        const auto [place, is_first] =
            places.try_emplace({setting, row.requested_budget, nth, question_seen, model}, groups.size());
        if (is_first) {
            groups.push_back(
                {is_full,
                 {.requested = budget_requested_in(row), .of_bytes = of_bytes, .entries = {}, .fractions = {}}});
            all.groups.push_back({setting, {}, of_bytes, question_seen, model});
        }
        groups[place->second].asked.add(row);
        all.rows.push_back({n_samples - 1, place->second});
    }
    std::vector<double> shares;
    for (const RowGroup& each : groups)
        if (!each.is_full && each.asked.is_share()) shares.push_back(each.asked.share());
    for (size_t i = 0; i < groups.size(); ++i)
        all.groups[i].budget = groups[i].is_full ? "all" : budget_text(groups[i].asked, shares);
    return all;
}

std::pair<int, double> budget_place(const std::string& budget) {
    const bool of_bytes = budget.starts_with(bytes_prefix);
    const std::string_view text = std::string_view(budget).substr(of_bytes ? bytes_prefix.size() : 0);
    double number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return {budget.ends_with('%') ? 2 : of_bytes ? 1 : 0, number};
}

}  // namespace kvscope::analysis
