#include <cmath>
#include <vector>

#include "policies/interface/merging_policy.h"

namespace kvscope::policies {

namespace {

/// Merges neighbouring entries where they matter least, with the keys' weights from the exact Hessian of the loss with
/// respect to the two keys, of which the forward pass alone has everything that does not cancel (its Eq. 33).
class KvSlimmer : public MergingPolicy {
 public:
    explicit KvSlimmer(const ParameterValues& values) : MergingPolicy(values) {}

 protected:
    std::vector<float> merged_keys(const MergeObservations& observations, std::span<const uint32_t> first) override {
        const auto d = static_cast<size_t>(observations.shape.head_dim);
        std::vector<float> keys;
        for (const uint32_t entry : first)
            for (int head = 0; head < observations.shape.n_kv_heads; ++head) {
                keys.resize(keys.size() + d);
                merge_keys(observations, head, entry, std::span(keys).last(d));
            }
        return keys;
    }

 private:
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
        .parameters = merging_parameters(),
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<KvSlimmer>(values);
        },
    };
}

}  // namespace kvscope::policies
