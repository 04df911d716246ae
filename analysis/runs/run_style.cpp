#include "analysis/runs/run_style.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include "analysis/drawing/policy_color.h"
#include "analysis/tables/table_format.h"
#include "policies/api/budget.h"
#include "policies/registry/registry.h"
#include "trace/records/schema.h"

namespace kvscope::analysis {
namespace {

constexpr std::array<Rgb, 3> full_colors = {{{0, 0, 0}, {102, 102, 102}, {76, 76, 76}}};  // usual, paler, darker
constexpr std::array shades = {Shade::usual, Shade::paler, Shade::darker};
constexpr Rgb budget_legend_color{90, 90, 90};
constexpr std::array dashes = {Dash::solid, Dash::dashed, Dash::dotted, Dash::dash_dotted};
constexpr size_t most_attempts = 64;  // to find a color with an unused shade
constexpr std::array markers = {Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::cross};

template <class T>
size_t place_of(std::vector<T>& known, const T& value) {
    const auto found = std::find(known.begin(), known.end(), value);
    if (found != known.end()) return static_cast<size_t>(found - known.begin());
    known.push_back(value);
    return known.size() - 1;
}

/// Returns a key for a policy with its parameters. All runs of one key have the same color.
std::string method(const trace::RunAttributes& run) { return run.policy + '\n' + run.parameters_json; }

/// Colors of a trace's methods. The first method of a policy has the policy's color, the next two have shades of it.
/// Each further group of three begins with another color, which depends only on the policy.
class MethodColors {
 public:
    MarkColor of(const trace::RunAttributes& run, Shade of_trace) {
        const auto [known, is_new] = methods_.try_emplace(method(run));
        auto& [name, shade] = known->second;
        for (size_t attempt = is_new ? n_methods_[run.policy]++ / shades.size() : 0, last = attempt + most_attempts;
             is_new; ++attempt) {
            name = attempt == 0 ? run.policy : fmt::format("{} {}", run.policy, attempt);
            const Rgb base = policy_color(name);
            size_t& n_used = n_shades_[{base.r, base.g, base.b}];
            // Policies outside the list may share a color as long as it has an unused shade.
            if (n_used >= shades.size() && attempt != last) continue;
            shade = shades[n_used++ % shades.size()];
            break;
        }
        return policy_color(name, shade, of_trace);
    }

 private:
    /// The name for policy_color() and the shade, by policy and parameters.
    std::map<std::string, std::pair<std::string, Shade>> methods_;
    std::map<std::string, size_t> n_methods_;            ///< number of methods of each policy
    std::map<std::array<uint8_t, 3>, size_t> n_shades_;  ///< number of used shades of each color
};

std::vector<BudgetKey> budgets_by_size(const std::vector<trace::RunAttributes>& runs) {
    std::set<BudgetKey, std::greater<>> budgets;
    for (const trace::RunAttributes& run : runs) {
        if (!run.is_full()) budgets.insert(budget_sort_key(run));
    }
    return {budgets.begin(), budgets.end()};
}

std::string budget_text(const trace::RunAttributes& run) {
    if (has_budget_of_bytes(run)) return fmt::format("{:.3g} % of the full cache's bytes", 100 * run.budget_fraction);
    return fmt::format("{} entries ({:.3g} %)", format_count(run.budget), 100 * run.budget_fraction);
}

}  // namespace

BudgetKey budget_sort_key(const trace::RunAttributes& run) {
    return {run.budget, has_budget_of_bytes(run) ? run.budget_fraction : 0.0};
}

bool has_budget_of_bytes(const trace::RunAttributes& run) {
    return run.budget_of == trace::schema::run::budget_of_bytes;
}

Column budget_column() { return {"budget", "Budget", "", ColumnType::integer}; }

Cell budget_cell(const trace::RunAttributes& run) {
    if (has_budget_of_bytes(run)) return policies::share_label(run.budget_fraction);
    return run.budget;
}

std::vector<LineStyle> run_styles(const std::vector<trace::RunAttributes>& runs,
                                  const std::vector<trace::RunAttributes>& recorded) {
    return run_styles_of_traces({runs}, recorded).front();
}

std::vector<std::vector<LineStyle>> run_styles_of_traces(const std::vector<std::vector<trace::RunAttributes>>& traces,
                                                         const std::vector<trace::RunAttributes>& recorded) {
    const auto first = std::find_if(traces.begin(), traces.end(), [](const auto& runs) { return !runs.empty(); });
    MethodColors colors;
    std::vector<BudgetKey> budgets = budgets_by_size(recorded.empty() && first != traces.end() ? *first : recorded);
    std::vector<std::vector<LineStyle>> styles;
    size_t n_before = 0;  // number of traces with runs so far; traces with only task scores use no shade
    for (const auto& runs : traces) {
        auto& own = styles.emplace_back();
        for (const trace::RunAttributes& run : runs) {
            const size_t shade = n_before % shades.size();
            LineStyle& style = own.emplace_back();
            if (run.is_full()) {
                style.color = full_colors[shade];
                style.marker = Marker::circle;
            } else {
                const size_t budget = place_of(budgets, budget_sort_key(run));
                style.color = colors.of(run, shades[shade]);
                style.dash = dashes[budget % dashes.size()];
                style.marker = markers[budget % markers.size()];
            }
        }
        n_before += runs.empty() ? 0 : 1;
    }
    return styles;
}

std::string recorded_or_default_label(const trace::RunAttributes& run) {
    if (!run.label.empty()) return run.label;
    return run.is_full() ? run.policy : fmt::format("{} {}", run.policy, run.budget);
}

std::string run_label(const trace::RunAttributes& run) {
    return run.given_label.empty() ? recorded_or_default_label(run) : run.given_label;
}

namespace {

std::string without_budget(const trace::RunAttributes& run) {
    const std::string_view label =
        policies::label_without_budget(run.given_label.empty() ? run.label : run.given_label);
    return label.empty() ? run.policy : std::string(label);
}

/// Whether the user's label, if any, ends with the budget of the recorded label.
bool says_its_budget(const trace::RunAttributes& run) {
    const std::string_view given = run.given_label, recorded = run.label;
    const size_t n_given = policies::label_without_budget(given).size();
    const size_t n_recorded = policies::label_without_budget(recorded).size();
    return given.empty() || (n_given > 0 && n_recorded > 0 && given.substr(n_given) == recorded.substr(n_recorded));
}

}  // namespace

int series_of_run(const std::vector<trace::RunAttributes>& runs, int run) {
    const std::string wanted = method(runs.at(static_cast<size_t>(run)));
    const auto first = std::find_if(runs.begin(), runs.end(), [&](const auto& each) { return method(each) == wanted; });
    return static_cast<int>(first - runs.begin());
}

std::vector<LegendEntry> run_legend(const std::vector<trace::RunAttributes>& runs, const std::vector<LineStyle>& styles,
                                    const std::vector<int>& shown) {
    std::vector<LegendEntry> legend;
    std::vector<std::string> methods;
    std::vector<BudgetKey> budgets;
    std::set<std::string> policies;
    std::set<std::pair<std::string, std::string>> named_methods;
    std::set<std::string> names;
    bool say_budgets = true;
    for (const int run : shown) {
        const auto& attributes = runs[static_cast<size_t>(run)];
        if (attributes.is_full()) continue;
        place_of(methods, method(attributes));
        place_of(budgets, budget_sort_key(attributes));
        policies.insert(attributes.policy);
        names.insert(without_budget(attributes));
        named_methods.emplace(method(attributes), without_budget(attributes));
        say_budgets = say_budgets && says_its_budget(attributes);
    }
    // Groups by policy only if each policy has one set of parameters and one name for all its runs.
    const bool grouped = methods.size() > 1 && budgets.size() > 1 && policies.size() == methods.size() &&
                         named_methods.size() == methods.size() && names.size() == methods.size() && say_budgets;
    if (!grouped) {
        for (const int run : shown) {
            const auto i = static_cast<size_t>(run);
            const std::string whole = runs[i].given_label.empty() ? "" : recorded_or_default_label(runs[i]);
            legend.push_back(
                {run_label(runs[i]), LegendEntry::Symbol::line, styles[i], whole, "", series_of_run(runs, run)});
        }
        return legend;
    }
    std::vector<std::string> listed;
    for (const int run : shown) {
        const auto i = static_cast<size_t>(run);
        const size_t n_listed = listed.size();
        if (place_of(listed, runs[i].policy) < n_listed) continue;
        LineStyle style = styles[i];
        style.dash = Dash::solid;
        style.marker = Marker::none;
        legend.push_back({without_budget(runs[i]), LegendEntry::Symbol::line, style, "", "", series_of_run(runs, run)});
    }
    std::map<std::pair<bool, BudgetKey>, size_t> by_size;  // budgets of entries first, then shares of bytes
    for (const int run : shown) {
        const auto i = static_cast<size_t>(run);
        if (!runs[i].is_full()) by_size.emplace(std::pair(has_budget_of_bytes(runs[i]), budget_sort_key(runs[i])), i);
    }
    for (const auto& [size, i] : by_size) {
        LineStyle style = styles[i];
        style.color = budget_legend_color;
        legend.push_back({budget_text(runs[i]), LegendEntry::Symbol::line, style});
    }
    return legend;
}

}  // namespace kvscope::analysis
