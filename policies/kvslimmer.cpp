#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "policies/interface/policy.h"

namespace kvscope::policies {

namespace {

/// Merges neighbouring entries where they matter least, with the keys' weights from the exact Hessian of the loss with
/// respect to the two keys, of which the forward pass alone has everything that does not cancel (its Eq. 33).
class KvSlimmer : public Policy {
 public:
    explicit KvSlimmer(const ParameterValues& values)
        : chunk_(values.automatic_integer("chunk")),
          sinks_(values.integer("sinks")),
          gamma_(values.real("gamma")),
          final_merge_(values.boolean("final_merge")) {}

    Needs needs() const override { return {}; }

    void begin(const RunContext& context) override {
        if (context.budget < context.n_tokens && context.budget <= sinks_ + 1)
            throw BudgetError(fmt::format(
                "a budget of {} entries, of which {} are sinks, leaves nothing to merge into: it needs at least {}, or "
                "fewer sinks",
                context.budget, sinks_, sinks_ + 2));
        context_ = context;
    }

    PassPlan plan(const RunContext& context) const override {
        PassPlan plan;
        // A chunk that is large beside the cache merges nearly all of it at once.
        plan.chunk = chunk_.value_or(std::clamp<int64_t>((context.budget + 3) / 4, 1, 512));
        plan.final_merge = final_merge_;
        return plan;
    }

    Selection select(LayerObservations&) override { throw std::logic_error("this policy merges, it does not select"); }

    bool stores_parts() const override { return true; }

    Merges merge(const MergeObservations& observations, int64_t n_merges) override {
        Merges merges;
        merges.first = chosen_pairs(observations, n_merges);
        const auto d = static_cast<size_t>(observations.shape.head_dim);
        for (const uint32_t first : merges.first)
            for (int head = 0; head < observations.shape.n_kv_heads; ++head) {
                merges.keys.resize(merges.keys.size() + d);
                merge_keys(observations, head, first, std::span(merges.keys).last(d));
            }
        return merges;
    }

 private:
    /// (A_i + A_{i+1}) (n_i + n_{i+1}) / exp(i / gamma), the lowest first, of two that overlap the lower one.
    std::vector<uint32_t> chosen_pairs(const MergeObservations& observations, int64_t n_merges) const {
        const auto n = static_cast<size_t>(observations.n_entries);
        std::vector<double> mass(n, 0.0);  // of attention, over all heads
        for (int head = 0; head < observations.shape.n_heads; ++head)
            for (size_t i = 0; i < n; ++i) mass[i] += double{observations.attention[static_cast<size_t>(head) * n + i]};
        const auto sinks = static_cast<size_t>(sinks_);
        std::vector<double> scores;
        for (size_t i = sinks; i + 1 < n; ++i) {
            const double size = double{observations.masses[i]} + double{observations.masses[i + 1]};
            // Its logarithm: the exponential has no room for many entries at a small gamma.
            const double score = std::log((mass[i] + mass[i + 1]) * size) - static_cast<double>(i - sinks + 1) / gamma_;
            if (std::isnan(score))
                throw ScoreError(fmt::format("the score of entries {} and {} is not a number", i, i + 1));
            scores.push_back(score);
        }
        std::vector<uint32_t> order(scores.size());
        std::iota(order.begin(), order.end(), static_cast<uint32_t>(sinks));
        std::stable_sort(order.begin(), order.end(),
                         [&](uint32_t a, uint32_t b) { return scores[a - sinks] < scores[b - sinks]; });
        std::vector<char> taken(n, 0);
        std::vector<uint32_t> chosen;
        for (const uint32_t first : order) {
            if (static_cast<int64_t>(chosen.size()) == n_merges) break;
            if (taken[first] || taken[first + 1]) continue;
            taken[first] = taken[first + 1] = 1;
            chosen.push_back(first);
        }
        std::sort(chosen.begin(), chosen.end());
        return chosen;
    }

    /// k* = ((|c11| - |c12|) k_m + (|c22| - |c12|) k_{m+1}) / (|c11| - 2 |c12| + |c22|), 2-norms; their mean where the
    /// denominator vanishes.
    static void merge_keys(const MergeObservations& observations, int head, uint32_t first, std::span<float> merged) {
        const ModelShape& shape = observations.shape;
        const auto d = static_cast<size_t>(shape.head_dim);
        const auto n = static_cast<size_t>(observations.n_entries);
        const int group = shape.group();
        double alpha[2] = {0, 0};
        std::vector<double> output(d, 0.0);
        for (int h = head * group; h < (head + 1) * group; ++h) {
            for (size_t i = 0; i < 2; ++i)
                alpha[i] += double{observations.attention[static_cast<size_t>(h) * n + first + i]} / group;
            for (size_t c = 0; c < d; ++c)
                output[c] += double{observations.outputs[static_cast<size_t>(h) * d + c]} / group;
        }
        std::vector<float> key[2] = {std::vector<float>(d), std::vector<float>(d)};
        std::vector<float> value[2] = {std::vector<float>(d), std::vector<float>(d)};
        for (size_t i = 0; i < 2; ++i) {
            read_entry(observations.keys, head, first + static_cast<int64_t>(i), shape.head_dim, key[i].data());
            read_entry(observations.values, head, first + static_cast<int64_t>(i), shape.head_dim, value[i].data());
        }
        double c11 = 0, c22 = 0, c12 = 0;  // squared norms
        for (size_t c = 0; c < d; ++c) {
            const double a = double{value[0][c]} / double{observations.masses[first]} - output[c];
            const double b = double{value[1][c]} / double{observations.masses[first + 1]} - output[c];
            c11 += a * a;
            c22 += b * b;
            c12 += (a + b) * (a + b);
        }
        c11 = std::abs(alpha[0] * (1 - 2 * alpha[0])) * std::sqrt(c11);
        c22 = std::abs(alpha[1] * (1 - 2 * alpha[1])) * std::sqrt(c22);
        c12 = alpha[0] * alpha[1] * std::sqrt(c12);
        const double denominator = c11 - 2 * c12 + c22;
        const bool vanishes = denominator <= 1e-6 * (c11 + c22);
        const double first_weight = vanishes ? 0.5 : (c11 - c12) / denominator;
        const double second_weight = vanishes ? 0.5 : (c22 - c12) / denominator;
        for (size_t c = 0; c < d; ++c)
            merged[c] = static_cast<float>(first_weight * double{key[0][c]} + second_weight * double{key[1][c]});
    }

    std::optional<int64_t> chunk_;
    int64_t sinks_;
    double gamma_;
    bool final_merge_;
    RunContext context_;
};

}  // namespace

Definition kvslimmer_definition() {
    return {
        .name = "kvslimmer",
        .title = "KVSlimmer",
        .paper =
            "KVSlimmer: Theoretical Insights and Practical Optimizations for Asymmetric KV Merging, 2026, "
            "arXiv:2603.00907",
        .summary =
            "Reads the prompt in chunks through its own cache and merges neighbouring entries that are attended to "
            "least: values add up, keys are weighed by how sharply the loss bends in them.",
        .parameters =
            {
                automatic_integer_parameter("chunk", "a quarter of the budget, at most 512", {.low = 1},
                                            "Tokens that are read before entries are merged; 512 in its paper, at a "
                                            "budget of 2048."),
                integer_parameter("sinks", 32, {.low = 0},
                                  "First entries, which are never merged; they count in the "
                                  "budget."),
                real_parameter("gamma", 4096 / std::log(512.0), {.low = 0, .low_open = true},
                               "Entries over which a pair's score falls by a factor of e, so that of equal ones the "
                               "recent are merged first; 4096 / ln 512 in its code."),
                boolean_parameter("final_merge", true,
                                  "Merge back to the budget behind the prompt, by the attention of its last query; off "
                                  "for its tables."),
            },
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<KvSlimmer>(values);
        },
    };
}

}  // namespace kvscope::policies
