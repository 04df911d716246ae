#include "policies/bases/merging_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/counted.h"

namespace kvscope::policies {
namespace {

/// Returns the logarithms of the scores, because the scores overflow for many entries and a small gamma.
std::vector<double> pair_scores(const MergeObservations& observations, size_t sinks, double gamma, bool size_factor) {
    const auto n = static_cast<size_t>(observations.n_entries);
    std::vector<double> mass(n, 0.0);  // attention summed over all heads
    for (int head = 0; head < observations.shape.n_heads; ++head)
        for (size_t i = 0; i < n; ++i) mass[i] += double{observations.attention[static_cast<size_t>(head) * n + i]};
    std::vector<double> scores;
    for (size_t i = sinks; i + 1 < n; ++i) {
        const double size = size_factor ? double{observations.masses[i]} + double{observations.masses[i + 1]} : 1.0;
        const double score = std::log((mass[i] + mass[i + 1]) * size) - static_cast<double>(i - sinks + 1) / gamma;
        if (std::isnan(score))
            throw ScoreError(fmt::format("the score of entries {} and {} is not a number", i, i + 1));
        scores.push_back(score);
    }
    return scores;
}

std::vector<uint32_t> chosen_pairs(const MergeObservations& observations, const std::vector<double>& scores,
                                   size_t sinks, int64_t n_merges) {
    std::vector<uint32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scores[a] < scores[b]; });
    std::vector<char> taken(scores.size() + 1, 0);
    std::vector<uint32_t> chosen;
    for (const uint32_t first : order) {
        if (static_cast<int64_t>(chosen.size()) == n_merges) break;
        if (taken[first] || taken[first + 1] || !observations.may_merge(static_cast<int64_t>(first + sinks))) continue;
        taken[first] = taken[first + 1] = 1;
        chosen.push_back(first + static_cast<uint32_t>(sinks));
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

}  // namespace

MergingPolicy::MergingPolicy(const ParameterValues& values)
    : chunk_(values.automatic_integer("chunk")),
      sinks_(values.integer("sinks")),
      gamma_(values.real("gamma")),
      size_factor_(!values.has("size_factor") || values.boolean("size_factor")),
      final_merge_(values.boolean("final_merge")),
      cap_(values.automatic_integer("cap")) {}

void MergingPolicy::begin(const RunContext& context) {
    if (context.budget < context.n_tokens && context.budget <= sinks_ + 1)
        throw BudgetError(
            fmt::format("a budget of {}, {} of them sinks, leaves no entries to merge into. Give at least {} "
                        "entries, or fewer sinks.",
                        counted(context.budget, "entry"), sinks_, sinks_ + 2));
    context_ = context;
}

OwnCacheReading MergingPolicy::reading(const RunContext& context) const {
    // A large chunk would merge nearly the whole cache in one step.
    return {.chunk = chunk_.value_or(std::clamp<int64_t>((context.budget + 3) / 4, 1, 512)),
            .final_merge = final_merge_};
}

Merges MergingPolicy::merge(const MergeObservations& observations, int64_t n_merges) {
    const auto sinks = static_cast<size_t>(sinks_);
    Merges merges;
    if (cap_) merges.largest_mass = static_cast<float>(*cap_);
    merges.first = chosen_pairs(observations, pair_scores(observations, sinks, gamma_, size_factor_), sinks, n_merges);
    merge_keys(observations, merges);
    return merges;
}

std::vector<Parameter> merging_parameters() {
    return {
        automatic_integer_parameter(
            "chunk", "a quarter of the budget, at most 512", {.low = 1},
            "Number of tokens read between two merges. The paper uses 512 at a budget of 2048."),
        integer_parameter("sinks", 32, {.low = 0},
                          "Number of first entries that are never merged. These entries are part of the budget."),
        real_parameter("gamma", 4096 / std::log(512.0), {.low = 0, .low_open = true},
                       "Number of entries over which a pair's score falls by a factor of e. Of pairs with equal "
                       "attention, recent pairs are merged first. The published code uses 4096 / ln 512."),
        boolean_parameter("final_merge", true,
                          "Whether entries are merged down to the budget after the prompt, by the attention of the "
                          "prompt's last query. The paper's tables use off."),
        automatic_integer_parameter("cap", "no limit", {.low = 1},
                                    "Largest weight of a merged entry in attention, as a number of tokens. The "
                                    "entry's value remains the full sum. A cap makes distances between entries smaller "
                                    "and attention outputs larger. The published code uses 5."),
    };
}

}  // namespace kvscope::policies
