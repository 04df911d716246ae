#include "analysis/runs/run_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "analysis/runs/requested_budget.h"
#include "analysis/runs/run_style.h"
#include "policies/registry/registry.h"
#include "trace/records/schema.h"

namespace kvscope::analysis {
namespace {

using trace::RunAttributes;

constexpr double same_share_distance = 2e-3;  // budgets given as shares are rounded to whole entries

bool same_policy(const RunAttributes& a, const RunAttributes& b) {
    return a.policy == b.policy && a.parameters_json == b.parameters_json;
}

/// Compares budgets of bytes by their exact share, because different shares may have equal numbers of entries.
bool same_budget(const RunAttributes& a, const RunAttributes& b) { return budget_sort_key(a) == budget_sort_key(b); }

/// Shares are equal if their labels are equal.
bool same_requested_budget(const RunAttributes& a, const RunAttributes& b) {
    const auto of_a = requested_budget(a), of_b = requested_budget(b);
    return of_a && of_b && of_a->label() == of_b->label() && a.budget_of == b.budget_of;
}

}  // namespace

std::vector<RunPair> pair_runs(std::span<const RunAttributes* const> a, std::span<const RunAttributes* const> b) {
    const std::array<std::function<bool(const RunAttributes&, const RunAttributes&)>, 5> likenesses = {
        [](const auto& x, const auto& y) {
            return same_policy(x, y) && same_requested_budget(x, y) && x.granularity == y.granularity;
        },
        [](const auto& x, const auto& y) {
            return same_policy(x, y) && (same_budget(x, y) || x.is_full()) && x.granularity == y.granularity;
        },
        [](const auto& x, const auto& y) {
            return same_policy(x, y) && std::abs(x.budget_fraction - y.budget_fraction) < same_share_distance;
        },
        [](const auto& x, const auto& y) { return x.policy == y.policy && same_requested_budget(x, y); },
        [](const auto& x, const auto& y) { return x.policy == y.policy && same_budget(x, y); }};
    const auto is_finished = [](const RunAttributes& run) { return run.status == trace::schema::run::status_complete; };
    std::vector<bool> has_like(a.size(), false);
    std::vector<bool> is_taken(b.size(), false);
    std::vector<RunPair> pairs;
    for (const auto& are_alike : likenesses) {
        for (size_t i = 0; i < a.size(); ++i) {
            if (has_like[i] || !is_finished(*a[i])) continue;
            for (size_t j = 0; j < b.size() && !has_like[i]; ++j) {
                if (is_taken[j] || !is_finished(*b[j]) || !are_alike(*a[i], *b[j])) continue;
                has_like[i] = is_taken[j] = true;
                pairs.push_back({i, j, same_policy(*a[i], *b[j])});
            }
        }
    }
    std::sort(pairs.begin(), pairs.end(), [](const RunPair& x, const RunPair& y) { return x.a < y.a; });
    return pairs;
}

std::string pair_label(const RunAttributes& a, const RunAttributes& b) {
    const std::string of_a = run_label(a);
    const std::string of_b = run_label(b);
    return of_a == of_b ? of_a : fmt::format("{} − {}", of_a, of_b);
}

namespace {

std::vector<ShownRun> labelled(std::vector<ShownRun> runs, size_t side) {
    for (ShownRun& run : runs) {
        run.label = run_label(run.attributes());
        run.trace = side;
    }
    return runs;
}

}  // namespace

ComparedSides compared_sides(std::span<const TracePart, 2> sides) {
    return {sides, {labelled(shown_runs(sides.subspan(0, 1)), 0), labelled(shown_runs(sides.subspan(1, 1)), 1)}};
}

ComparedSides compared_sides(std::span<const TracePart, 2> sides, const std::vector<int>& a,
                             const std::vector<int>& b) {
    ComparedSides compared{sides, {}};
    for (const size_t side : {0, 1}) {
        for (const int run : side == 0 ? a : b) compared.runs[side].push_back({&sides[side], run, "", {}, side});
        compared.runs[side] = labelled(std::move(compared.runs[side]), side);
    }
    return compared;
}

std::vector<ShownPair> shown_pairs(const ComparedSides& compared) {
    const auto& [sides, runs] = compared;
    const auto& [of_a, of_b] = runs;
    std::vector<RunPair> pairs;
    const bool both_are_named = !sides[0].options.runs.empty() && !sides[1].options.runs.empty();
    if (of_b.size() == 1 && ((both_are_named && of_a.size() == 1) || sides[1].against_each)) {
        for (size_t i = 0; i < of_a.size(); ++i) pairs.push_back({i, 0, true});
    } else {
        std::array<std::vector<const RunAttributes*>, 2> attributes;
        for (size_t side = 0; side < 2; ++side) {
            for (const ShownRun& run : runs[side]) attributes[side].push_back(&run.attributes());
        }
        pairs = pair_runs(attributes[0], attributes[1]);
    }
    std::vector<ShownPair> shown;
    for (const RunPair& pair : pairs) {
        const ShownRun& a = of_a[pair.a];
        const ShownRun& b = of_b[pair.b];
        shown.push_back({a, b, pair_label(a.attributes(), b.attributes())});
    }
    if (shown.empty()) {
        throw NothingToShow(fmt::format(
            "no run of A ({}) has the same policy and budget as a run of B ({}): A has {}; B has {}. Choose one run on "
            "each side.",
            sides[0].name, sides[1].name, join_run_labels(of_a), join_run_labels(of_b)));
    }
    return shown;
}

std::vector<ShownPair> shown_pairs(std::span<const TracePart, 2> sides) { return shown_pairs(compared_sides(sides)); }

std::string unpaired_runs(const ComparedSides& compared, std::span<const ShownPair> pairs) {
    std::string text;
    for (size_t side = 0; side < 2; ++side) {
        std::vector<ShownRun> runs = compared.runs[side];
        std::erase_if(runs, [&](const ShownRun& run) {
            return std::any_of(pairs.begin(), pairs.end(),
                               [&](const ShownPair& pair) { return (side == 0 ? pair.a : pair.b).index == run.index; });
        });
        if (runs.empty()) continue;
        const std::string& name = compared.sides[side].name;
        text += fmt::format("{}of {}{}: {}", text.empty() ? "" : "; ", side == 0 ? "A" : "B",
                            name.empty() ? "" : " (" + name + ")", join_run_labels(runs));
    }
    return text;
}

std::string pair_title(std::span<const TracePart, 2> sides, const std::string& a, const std::string& b) {
    const std::string &of_a = sides[0].name, &of_b = sides[1].name;
    if (sides[0].reader == sides[1].reader || of_a.empty() || of_b.empty() || of_a == of_b)
        return a == b ? a : fmt::format("{} − {}", a, b);
    if (of_a.ends_with(a) && of_b.ends_with(b)) return fmt::format("{} − {}", of_a, of_b);  // named after their runs
    if (a != b) return fmt::format("{}: {} − {}: {}", of_a, a, of_b, b);
    return fmt::format("{}{}{} − {}", a, a.empty() ? "" : ": ", of_a, of_b);
}

std::string difference_title(std::span<const TracePart, 2> sides, std::span<const ShownPair> pairs) {
    if (sides[0].reader != sides[1].reader && !sides[0].name.empty() && !sides[1].name.empty())
        return fmt::format("{} − {}", sides[0].name, sides[1].name);
    return pairs.size() == 1 ? pairs.front().label : "A − B";
}

std::vector<LegendEntry> legend_of_pairs(std::span<const TracePart, 2> sides, std::span<const ShownPair> pairs) {
    std::vector<int> indices;
    for (const ShownPair& pair : pairs) indices.push_back(pair.a.index);
    const TracePart& part = sides[0];
    const bool all_alike =
        std::all_of(pairs.begin(), pairs.end(), [](const ShownPair& pair) { return pair.label == pair.a.label; });
    if (all_alike && !part.styles.empty())
        return run_legend(part.reader->runs(part.options.prompt), part.styles, indices);
    std::vector<LegendEntry> legend;
    for (const ShownPair& pair : pairs) legend.push_back({pair.label, LegendEntry::Symbol::line, pair.a.style});
    return legend;
}

void complete_figure(Figure& figure, std::span<const TracePart, 2> sides, std::span<const ShownPair> pairs) {
    std::vector<ShownRun> runs;
    for (const ShownPair& pair : pairs) runs.push_back(pair.a);
    for (const ShownPair& pair : pairs) runs.push_back(pair.b);
    complete_figure(figure, std::span<const TracePart>(sides), runs);
}

std::string with_unit(const std::string& title, const std::string& unit) {
    return unit.empty() ? title : fmt::format("{} ({})", title, unit);
}

Axis difference_axis(const std::string& title, const std::string& unit, double farthest) {
    Axis axis;
    axis.title = "A − B: " + title;
    axis.unit = unit;
    axis.max = std::max(1.08 * farthest, 1e-9);
    axis.min = -axis.max;
    return axis;
}

Rule zero_line() {
    Rule rule;
    rule.style.color = Rgb{120, 120, 120};
    rule.style.width_pt = 0.5;
    return rule;
}

}  // namespace kvscope::analysis
