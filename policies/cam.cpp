#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/larger.h"
#include "policies/bases/attention_sum_policy.h"
#include "policies/methods/seeded_random.h"

namespace kvscope::policies {

namespace {

constexpr uint32_t n_sinks = 4;

/// Evicts like H2O, and adds evicted values at random to the next kept values.
class Cam : public AttentionSumPolicy, public MergesValues {
 public:
    explicit Cam(const ParameterValues& values)
        : AttentionSumPolicy(values),
          merge_(values.integer("merge")),
          by_largest_(values.text("denominator") == "max") {}

    void merge_values(LayerObservations& observations, const Selection& selection, int row,
                      std::span<float> values) override {
        const int d = context().shape.head_dim;
        const std::vector<uint32_t>& kept = selection.rows[static_cast<size_t>(row)];
        const std::span<const float> attention(selection.scores.data() + row * context().n_tokens,
                                               static_cast<size_t>(context().n_tokens));
        const int head = row * context().shape.n_kv_heads / static_cast<int>(selection.rows.size());
        SeededRandom random = row_random(context().seed, observations.layer, row);
        const double largest = largest_protected(attention, kept);
        std::vector<float> evicted(static_cast<size_t>(d));
        size_t next = 0;  // first kept entry after the position
        for (int64_t position = 0; position < context().n_tokens; ++position) {
            if (next == kept.size()) return;
            if (kept[next] == position) {
                ++next;
                continue;
            }
            const size_t end = std::min(next + static_cast<size_t>(merge_), kept.size());
            double mean = 0.0;
            for (size_t i = next; i < end; ++i) mean += attention[kept[i]];
            mean /= static_cast<double>(end - next);
            const double denominator = by_largest_ ? largest : mean;
            const double probability = denominator > 0.0 ? attention[static_cast<size_t>(position)] / denominator : 1.0;
            if (random.unit() >= probability) continue;
            read_entry(observations.values, head, position, d, evicted.data());
            for (size_t i = next; i < end; ++i) {
                float* value = values.data() + i * static_cast<size_t>(d);
                for (size_t c = 0; c < evicted.size(); ++c) value[c] += evicted[c] / static_cast<float>(merge_);
            }
        }
    }

 private:
    double largest_protected(std::span<const float> attention, const std::vector<uint32_t>& kept) const {
        double largest = 0.0;
        for (const uint32_t position : kept) {
            if (position < n_sinks || position >= context().n_tokens - recent())
                largest = kernels::larger<double>(largest, attention[position]);
        }
        return largest;
    }

    int64_t merge_;
    bool by_largest_;
};

}  // namespace

Definition cam_definition() {
    return {
        .name = "cam",
        .title = "CaM",
        .paper =
            "Zhang et al., CaM: Cache Merging for Memory-efficient LLMs Inference, ICML 2024, "
            "proceedings.mlr.press/v235/zhang24n.html",
        .summary =
            "Evicts the same entries as H2O. With a probability that grows with the entry's attention, the value of an "
            "evicted entry is divided by m and added to the next m kept values.",
        .parameters =
            {
                recent_parameter(),
                integer_parameter("merge", 32, {.low = 1},
                                  "Number m of following kept values that each receive 1 / m of an evicted value."),
                choice_parameter(
                    "denominator", {"max", "mean"}, "max",
                    "The probability of merging is the attention of the evicted entry divided by this number. With max "
                    "(as in the authors' code), the number is the largest attention of the first 4 entries and the "
                    "recent entries. With mean (as in the paper), the number is the mean attention of the m entries. "
                    "With mean, merged values outweigh the kept values if a whole prompt is evicted in one step."),
                reduce_parameter(),
                granularity_parameter(),
                key_positions_parameter(),
            },
        .create = make_policy<Cam>,
    };
}

}  // namespace kvscope::policies
