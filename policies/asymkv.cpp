#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "policies/bases/merging_policy.h"
#include "policies/methods/running_entry_averages.h"

namespace kvscope::policies {

namespace {

/// Merges KVSlimmer's pairs with weights from the squared mean gradient of the loss. The mean covers the chunks that
/// attended to an entry. After the prompt, the last chunk's entries use the gradient of their own chunk.
class AsymKv : public MergingPolicy {
 public:
    explicit AsymKv(const ParameterValues& values) : MergingPolicy(values) {}

    OwnCacheReading reading(const RunContext& context) const override {
        OwnCacheReading reading = MergingPolicy::reading(context);
        reading.key_gradients = true;
        return reading;
    }

    void begin(const RunContext& context) override {
        MergingPolicy::begin(context);
        const int64_t width = int64_t{context.shape.n_kv_heads} * context.shape.head_dim;
        layers_.assign(static_cast<size_t>(context.shape.n_layers), RunningEntryAverages(width));
    }

 protected:
    /// Computes k* = (h_m k_m + h_{m+1} k_{m+1}) / (h_m + h_{m+1}) with h = g^2 per coordinate, or the mean if both h
    /// are 0. The merged entry has the gradient g_m + g_{m+1}.
    void merge_keys(const MergeObservations& observations, Merges& merges) override {
        RunningEntryAverages& gradients = layers_[static_cast<size_t>(observations.layer)];
        update(observations, gradients);
        const int d = observations.shape.head_dim;
        std::vector<float> sums, one(static_cast<size_t>(d)), two(one.size());
        for (const uint32_t entry : merges.first) {
            const auto g = gradients.of(entry), h = gradients.of(entry + 1);
            for (int head = 0; head < observations.shape.n_kv_heads; ++head) {
                read_entry(observations.keys, head, int64_t{entry}, d, one.data());
                read_entry(observations.keys, head, int64_t{entry} + 1, d, two.data());
                for (size_t c = 0; c < one.size(); ++c) {
                    const auto at = static_cast<size_t>(head * d) + c;
                    merges.keys.push_back(merged(one[c], g[at], two[c], h[at]));
                    sums.push_back(g[at] + h[at]);
                }
            }
        }
        gradients.merge(merges.first, sums);
    }

 private:
    static void update(const MergeObservations& observations, RunningEntryAverages& gradients) {
        const auto n = static_cast<size_t>(observations.n_entries);
        gradients.resize(observations.n_entries);
        if (observations.key_gradients.empty()) return;
        const auto d = static_cast<size_t>(observations.shape.head_dim);
        std::vector<float> by_entry;
        for (size_t i = 0; i < n; ++i)
            for (size_t head = 0; head < static_cast<size_t>(observations.shape.n_kv_heads); ++head)
                for (size_t c = 0; c < d; ++c) {
                    by_entry.push_back(observations.key_gradients[(head * n + i) * d + c]);
                    if (!std::isfinite(by_entry.back()))
                        throw ScoreError(fmt::format(
                            "the gradient of the loss with respect to the key of entry {}, KV head {}, is not finite",
                            i, head));
                }
        gradients.take(by_entry, [&](int64_t n_chunks) {
            return observations.after_prompt ? 0.0 : 1.0 / static_cast<double>(n_chunks + 1);
        });
    }

    static float merged(float one, float gradient_of_one, float two, float gradient_of_two) {
        // In f32, squares of small gradients would be 0.
        const double a = double{gradient_of_one} * double{gradient_of_one};
        const double b = double{gradient_of_two} * double{gradient_of_two};
        const double first = a + b > 0 ? a / (a + b) : 0.5;
        return static_cast<float>(first * double{one} + (1 - first) * double{two});
    }

    std::vector<RunningEntryAverages> layers_;
};

}  // namespace

Definition asymkv_definition() {
    return {
        .name = "asymkv",
        .title = "AsymKV",
        .paper =
            "Cui and Xu, Homogeneous Keys, Heterogeneous Values: Exploiting Local KV Cache Asymmetry for Long-Context "
            "LLMs, NeurIPS 2025, arXiv:2506.05410",
        .summary =
            "Merges the same entries as KVSlimmer, but weights their keys by the squared gradient of the loss. Each "
            "chunk that merges entries needs an additional forward and backward pass.",
        .parameters = merging_parameters(),
        .create = make_policy<AsymKv>,
    };
}

}  // namespace kvscope::policies
