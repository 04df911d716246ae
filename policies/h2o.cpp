#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "kernels/larger.h"
#include "kernels/select_topk.h"
#include "policies/bases/attention_sum_policy.h"
#include "policies/bases/score_operations.h"
#include "policies/methods/decode_step_entries.h"

namespace kvscope::policies {

AttentionSumPolicy::AttentionSumPolicy(const ParameterValues& values)
    : ScoringPolicy(values), reduction_(reduction_of(values)) {}

Needs AttentionSumPolicy::needs() const { return {.attention_sums = true}; }

std::string AttentionSumPolicy::shared_as() const {
    return fmt::format("attention sums {} {}", static_cast<int>(reduction_), static_cast<int>(granularity()));
}

std::vector<float> AttentionSumPolicy::score(LayerObservations& observations) {
    const std::span<const float> sums = observations.attention_sums;
    if (static_cast<int64_t>(sums.size()) != context().shape.n_heads * context().n_tokens) {
        throw std::logic_error("the attention sums of layer " + std::to_string(observations.layer) +
                               " were not observed");
    }
    return reduce_scores_by_head<float>(context().shape, granularity(), reduction_, sums.data(), context().n_tokens);
}

namespace {

/// Adds the attention of decoded tokens to the sums, and evicts the entry with the smallest sum at each step.
class RollingH2o : public AttentionSumPolicy, public EvictsWhileDecoding {
 public:
    using AttentionSumPolicy::AttentionSumPolicy;

    void begin(const RunContext& context) override {
        AttentionSumPolicy::begin(context);
        kept_sums_.assign(static_cast<size_t>(context.shape.n_layers), {});
        sums_.assign(static_cast<size_t>(context.shape.n_layers), {});
    }

    Selection select(LayerObservations& observations) override {
        Selection selection = AttentionSumPolicy::select(observations);
        remember(observations.layer, observations.attention_sums, selection);
        return selection;
    }

    StepEvictions step(const StepObservations& observations) override {
        std::vector<std::vector<std::vector<double>>>& layer = sums_.at(static_cast<size_t>(observations.layer));
        if (observations.step == 0) layer = kept_sums_[static_cast<size_t>(observations.layer)];
        StepEvictions evictions(observations.rows.size());
        for (size_t row = 0; row < evictions.size(); ++row) {
            accumulate(observations.rows[row], layer.at(row));
            evict(observations, row, layer[row], evictions[row]);
        }
        return evictions;
    }

 private:
    void remember(int layer, std::span<const float> sums, const Selection& selection) {
        const int group = context().shape.n_heads / static_cast<int>(selection.rows.size());
        auto& kept = kept_sums_[static_cast<size_t>(layer)];
        kept.assign(selection.rows.size(), std::vector<std::vector<double>>(static_cast<size_t>(group)));
        for (size_t row = 0; row < kept.size(); ++row) {
            for (int q = 0; q < group; ++q) {
                const float* of_head = sums.data() + (static_cast<int64_t>(row) * group + q) * context().n_tokens;
                for (uint32_t position : selection.rows[row])
                    kept[row][static_cast<size_t>(q)].push_back(of_head[position]);
            }
        }
    }

    static void accumulate(const StepObservations::Row& observed, std::vector<std::vector<double>>& sums) {
        const size_t n = observed.positions.size();
        for (size_t q = 0; q < sums.size(); ++q) {
            sums[q].resize(n, 0.0);
            for (size_t i = 0; i < n; ++i) sums[q][i] += observed.attention[q * n + i];
        }
    }

    double reduced(const std::vector<std::vector<double>>& sums, size_t entry) const {
        double value = sums[0][entry];
        for (size_t q = 1; q < sums.size(); ++q) {
            value = reduction() == kernels::HeadReduction::max ? kernels::larger(value, sums[q][entry])
                                                               : value + sums[q][entry];
        }
        return reduction() == kernels::HeadReduction::mean ? value / static_cast<double>(sums.size()) : value;
    }

    /// Drops the entries with the lowest sums until the budget is met. Keeps recent entries and entries of a question.
    void evict(const StepObservations& observations, size_t row, std::vector<std::vector<double>>& sums,
               std::vector<uint32_t>& evicted) const {
        const DecodeStepEntries entries(context(), observations, observations.rows[row].positions);
        const int64_t excess = entries.n_counted() - context().budget;
        if (excess <= 0) return;
        std::vector<uint32_t> candidates;
        for (uint32_t i = 0; i < entries.size(); ++i) {
            if (!entries.is_question(i)) candidates.push_back(i);
        }
        candidates.resize(candidates.size() - static_cast<size_t>(recent()));
        std::vector<double> negated;
        for (uint32_t i : candidates) negated.push_back(-reduced(sums, i));
        evicted.resize(static_cast<size_t>(excess));
        kernels::select_topk(negated.data(), static_cast<int64_t>(negated.size()), excess, evicted.data());
        for (uint32_t& i : evicted) i = candidates[i];
        for (std::vector<double>& of_head : sums) {
            for (auto i = evicted.rbegin(); i != evicted.rend(); ++i) of_head.erase(of_head.begin() + *i);
        }
    }

    std::vector<std::vector<std::vector<std::vector<double>>>> kept_sums_, sums_;  ///< [layer][row][query head][entry]
};

}  // namespace

Definition h2o_definition() {
    return {
        .name = "h2o",
        .title = "H2O",
        .paper =
            "Zhang et al., H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models, "
            "NeurIPS 2023, arXiv:2306.14048",
        .summary =
            "Keeps the most recent entries and the heavy hitters, which are the entries with the largest attention "
            "summed over all prompt queries.",
        .parameters =
            {
                recent_parameter(),
                rolling_parameter(),
                reduce_parameter(),
                granularity_parameter(),
                key_positions_parameter(),
            },
        .create =
            [](const ParameterValues& values) {
                return values.boolean("rolling") ? make_policy<RollingH2o>(values)
                                                 : make_policy<AttentionSumPolicy>(values);
            },
    };
}

}  // namespace kvscope::policies
