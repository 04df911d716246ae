#include "analysis/run_style.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "analysis/table_format.h"

namespace kvscope::analysis {
namespace {

constexpr Rgb kBlack{0, 0, 0};
constexpr Rgb kGrey{90, 90, 90};
constexpr std::array kDashes = {Dash::solid, Dash::dashed, Dash::dotted, Dash::dash_dotted};
constexpr std::array kMarkers = {Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::cross};

template <class T>
size_t place_of(std::vector<T>& known, const T& value) {
    const auto found = std::find(known.begin(), known.end(), value);
    if (found != known.end()) return static_cast<size_t>(found - known.begin());
    known.push_back(value);
    return known.size() - 1;
}

/// Policy and parameters together are what a colour stands for.
std::string method(const trace::RunAttributes& run) { return run.policy + '\n' + run.parameters_json; }

/// Of the i-th of several traces, or of colours that are used for the i-th time.
Rgb shade(Rgb color, size_t i) {
    const auto mixed = [&](uint8_t channel, int with) { return static_cast<uint8_t>((3 * channel + 2 * with) / 5); };
    const auto all = [&](int with) { return Rgb{mixed(color.r, with), mixed(color.g, with), mixed(color.b, with)}; };
    if (i % 3 == 0) return color;
    return i % 3 == 1 ? all(255) : all(color == kBlack ? 190 : 0);
}

/// Without repetition, the largest first.
std::vector<int64_t> budgets_by_size(const std::vector<trace::RunAttributes>& runs) {
    std::set<int64_t, std::greater<>> budgets;
    for (const trace::RunAttributes& run : runs) {
        if (!is_full(run)) budgets.insert(run.budget);
    }
    return {budgets.begin(), budgets.end()};
}

std::string budget_text(const trace::RunAttributes& run) {
    return fmt::format("{} entries ({:.3g} %)", format_count(run.budget), 100 * run.budget_fraction);
}

}  // namespace

bool is_full(const trace::RunAttributes& run) { return run.policy == "full"; }

std::vector<LineStyle> run_styles(const std::vector<trace::RunAttributes>& runs,
                                  const std::vector<trace::RunAttributes>& recorded) {
    std::vector<std::string> methods;
    std::vector<int64_t> budgets = budgets_by_size(recorded.empty() ? runs : recorded);
    std::vector<LineStyle> styles;
    const auto colors = okabe_ito();
    for (const trace::RunAttributes& run : runs) {
        LineStyle style;
        if (is_full(run)) {
            style.color = kBlack;
            style.marker = Marker::circle;
        } else {
            const size_t color = place_of(methods, method(run));
            const size_t budget = place_of(budgets, run.budget);
            style.color = shade(colors[color % colors.size()], color / colors.size());
            style.dash = kDashes[budget % kDashes.size()];
            style.marker = kMarkers[(budget + color / colors.size() * 2) % kMarkers.size()];
        }
        styles.push_back(style);
    }
    return styles;
}

std::vector<std::vector<LineStyle>> joint_run_styles(const std::vector<std::vector<trace::RunAttributes>>& traces,
                                                     const std::vector<trace::RunAttributes>& recorded) {
    std::vector<trace::RunAttributes> all;
    for (const auto& runs : traces) all.insert(all.end(), runs.begin(), runs.end());
    const std::vector<LineStyle> styles =
        run_styles(all, recorded.empty() && !traces.empty() ? traces.front() : recorded);
    std::vector<std::vector<LineStyle>> of_traces;
    auto next = styles.begin();
    for (size_t i = 0; i < traces.size(); ++i) {
        const auto end = next + static_cast<std::ptrdiff_t>(traces[i].size());
        auto& own = of_traces.emplace_back(next, end);
        for (LineStyle& style : own) style.color = shade(style.color, i);
        next = end;
    }
    return of_traces;
}

std::string run_label(const trace::RunAttributes& run) {
    if (!run.label.empty()) return run.label;
    return is_full(run) ? run.policy : fmt::format("{} {}", run.policy, run.budget);
}

std::vector<LegendEntry> run_legend(const std::vector<trace::RunAttributes>& runs, const std::vector<LineStyle>& styles,
                                    const std::vector<int>& shown) {
    std::vector<LegendEntry> legend;
    std::vector<std::string> methods;
    std::vector<int64_t> budgets;
    std::set<std::string> policies;
    for (const int run : shown) {
        const auto& attributes = runs[static_cast<size_t>(run)];
        if (is_full(attributes)) continue;
        place_of(methods, method(attributes));
        place_of(budgets, attributes.budget);
        policies.insert(attributes.policy);
    }
    // A policy's name says which runs are meant only while no two sets of parameters share it.
    const bool grouped = methods.size() > 1 && budgets.size() > 1 && policies.size() == methods.size();
    if (!grouped) {
        for (const int run : shown) {
            const auto i = static_cast<size_t>(run);
            legend.push_back({run_label(runs[i]), LegendEntry::Symbol::line, styles[i]});
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
        legend.push_back({runs[i].policy, LegendEntry::Symbol::line, style});
    }
    std::vector<int64_t> listed_budgets;
    for (const int run : shown) {
        const auto i = static_cast<size_t>(run);
        const size_t n_listed = listed_budgets.size();
        if (is_full(runs[i]) || place_of(listed_budgets, runs[i].budget) < n_listed) continue;
        LineStyle style = styles[i];
        style.color = kGrey;
        legend.push_back({budget_text(runs[i]), LegendEntry::Symbol::line, style});
    }
    return legend;
}

}  // namespace kvscope::analysis
