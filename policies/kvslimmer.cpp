#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/counted.h"
#include "policies/bases/merging_policy.h"
#include "policies/methods/running_entry_averages.h"

namespace kvscope::policies {

namespace {

/// Attention, output and entries of one KV head, averaged over the queries and the group.
struct HeadObservations {
    std::vector<double> attention;  ///< (n) n_i exp(e_i) divided by the sum over all entries
    std::vector<double> output;     ///< shape (d)
    std::vector<float> keys;        ///< shape (n, d)
    std::vector<float> values;      ///< (n, d) sums over the tokens of an entry

    HeadObservations(const MergeObservations& observations, int head)
        : attention(static_cast<size_t>(observations.n_entries), 0.0),
          output(static_cast<size_t>(observations.shape.head_dim), 0.0),
          keys(attention.size() * output.size()),
          values(keys.size()) {
        const int group = observations.shape.group(), d = observations.shape.head_dim;
        for (auto h = static_cast<size_t>(head * group); h < static_cast<size_t>((head + 1) * group); ++h) {
            for (size_t i = 0; i < attention.size(); ++i)
                attention[i] += double{observations.attention[h * attention.size() + i]} / group;
            for (size_t c = 0; c < output.size(); ++c)
                output[c] += double{observations.outputs[h * output.size() + c]} / group;
        }
        for (size_t i = 0; i < attention.size(); ++i) {
            read_entry(observations.keys, head, static_cast<int64_t>(i), d, &keys[i * output.size()]);
            read_entry(observations.values, head, static_cast<int64_t>(i), d, &values[i * output.size()]);
        }
    }

    std::span<const float> key(size_t i) const { return std::span(keys).subspan(i * output.size(), output.size()); }
    std::span<const float> value(size_t i) const { return std::span(values).subspan(i * output.size(), output.size()); }
};

struct PairWeights {
    double first = 0.5, second = 0.5;
    bool outside() const { return first < 0 || second < 0; }
};

/// Returns the weights |c11| - |c12| and |c22| - |c12|, scaled to sum 1. The weights are equal if both are 0.
PairWeights weights_of(const MergeObservations& observations, const HeadObservations& head, size_t first) {
    double c11 = 0, c22 = 0, c12 = 0;  // squared norms
    for (size_t c = 0; c < head.output.size(); ++c) {
        const double a = double{head.value(first)[c]} / double{observations.masses[first]} - head.output[c];
        const double b = double{head.value(first + 1)[c]} / double{observations.masses[first + 1]} - head.output[c];
        c11 += a * a;
        c22 += b * b;
        c12 += (a + b) * (a + b);
    }
    const double alpha[2] = {head.attention[first], head.attention[first + 1]};
    c11 = std::abs(alpha[0] * (1 - 2 * alpha[0])) * std::sqrt(c11);
    c22 = std::abs(alpha[1] * (1 - 2 * alpha[1])) * std::sqrt(c22);
    c12 = alpha[0] * alpha[1] * std::sqrt(c12);
    const double denominator = c11 - 2 * c12 + c22;
    if (denominator <= 1e-6 * (c11 + c22)) return {};
    return {(c11 - c12) / denominator, (c22 - c12) / denominator};
}

/// The weights of the published code. alpha is the attention over the entries after the sinks, v an entry's value, and
/// o = sum alpha v. h = alpha (1 - 2 alpha) |v - o| (1-norm) is averaged over the chunks: after k chunks, a new h has
/// weight 1 / k. With x = h / (alpha (1 - 2 alpha)) and c12 = alpha_m alpha_{m+1} (x_m + x_{m+1}), weights are
/// proportional to h - c12. A merged entry has w_m^2 h_m + w_{m+1}^2 h_{m+1}. Unlike in the code, weights with sum 0
/// are equal.
class PublishedWeights {
 public:
    explicit PublishedWeights(const RunContext& context = {}, int64_t sinks = 0) : sinks_(static_cast<size_t>(sinks)) {
        for (int layer = 0; layer < context.shape.n_layers; ++layer)
            layers_.push_back({RunningEntryAverages(context.shape.n_kv_heads), -1});
    }

    std::vector<PairWeights> weights(const MergeObservations& observations, const std::vector<HeadObservations>& heads,
                                     std::span<const uint32_t> first) {
        std::vector<std::vector<double>> alpha;
        for (const HeadObservations& head : heads) alpha.push_back(alpha_of(head));
        RunningEntryAverages& averages = look(observations, heads, alpha);
        std::vector<PairWeights> weights;
        std::vector<float> merged;
        for (const uint32_t entry : first)
            for (size_t g = 0; g < heads.size(); ++g) {
                const double h[2] = {double{averages.of(entry)[g]}, double{averages.of(entry + 1)[g]}};
                const double a = alpha[g][entry], b = alpha[g][entry + 1];
                const double c12 = a * b * (h[0] / (a * (1 - 2 * a) + tiny) + h[1] / (b * (1 - 2 * b) + tiny));
                const double sum = h[0] + h[1] - 2 * c12;
                const PairWeights w = sum == 0 ? PairWeights{} : PairWeights{(h[0] - c12) / sum, (h[1] - c12) / sum};
                merged.push_back(static_cast<float>(w.first * w.first * h[0] + w.second * w.second * h[1]));
                weights.push_back(w);
            }
        averages.merge(first, merged);
        return weights;
    }

 private:
    static constexpr double tiny = 1e-21;

    struct Layer {
        RunningEntryAverages averages;
        int64_t last_look = -1;  // number of chunks read before the latest update; one more after the prompt
    };

    std::vector<double> alpha_of(const HeadObservations& head) const {
        std::vector<double> alpha(head.attention.size(), 0.0);
        double sum = 0;
        for (size_t i = sinks_; i < alpha.size(); ++i) sum += head.attention[i];
        for (size_t i = sinks_; i < alpha.size(); ++i) alpha[i] = head.attention[i] / (sum + tiny);
        return alpha;
    }

    /// Adds the h of a chunk to the averages. Later rounds of merging in the same chunk do not add it again.
    RunningEntryAverages& look(const MergeObservations& observations, const std::vector<HeadObservations>& heads,
                               const std::vector<std::vector<double>>& alpha) {
        Layer& layer = layers_[static_cast<size_t>(observations.layer)];
        layer.averages.resize(observations.n_entries);
        const int64_t number = observations.n_chunks + (observations.after_prompt ? 1 : 0);
        if (std::exchange(layer.last_look, number) == number) return layer.averages;
        std::vector<float> now(static_cast<size_t>(observations.n_entries) * heads.size(), 0.0f);
        for (size_t g = 0; g < heads.size(); ++g) {
            const HeadObservations& head = heads[g];
            std::vector<double> output(head.output.size(), 0.0);
            for (size_t i = sinks_; i < alpha[g].size(); ++i)
                for (size_t c = 0; c < output.size(); ++c) output[c] += alpha[g][i] * double{head.value(i)[c]};
            for (size_t i = sinks_; i < alpha[g].size(); ++i) {
                double distance = 0;
                for (size_t c = 0; c < output.size(); ++c) distance += std::abs(double{head.value(i)[c]} - output[c]);
                now[i * heads.size() + g] = static_cast<float>(alpha[g][i] * (1 - 2 * alpha[g][i]) * distance);
            }
        }
        const double share = observations.after_prompt ? 0.0 : 1 / std::max(1.0, static_cast<double>(number));
        layer.averages.take(now, [&](int64_t) { return share; });
        return layer.averages;
    }

    size_t sinks_;
    std::vector<Layer> layers_;
};

/// Merges neighboring entries with little attention. The keys' weights come from the exact Hessian of the loss (Eq.
/// 33): k* = ((|c11| - |c12|) k_m + (|c22| - |c12|) k_{m+1}) / (|c11| - 2 |c12| + |c22|).
class KvSlimmer : public MergingPolicy {
 public:
    explicit KvSlimmer(const ParameterValues& values)
        : MergingPolicy(values),
          as_published_(values.text("weights") == "published"),
          merges_while_decoding_(values.boolean("decode_merge")) {}

    void begin(const RunContext& context) override {
        MergingPolicy::begin(context);
        if (merges_while_decoding_ && context.budget <= sinks() + 1)
            throw BudgetError(
                fmt::format("decode_merge: a budget of {}, {} of them sinks, leaves no entries to merge "
                            "decoded tokens into. Give at least {} entries, or fewer sinks.",
                            counted(context.budget, "entry"), sinks(), sinks() + 2));
        if (as_published_ && merges_while_decoding_)
            throw BudgetError(
                "weights=published follows the published code, which does not merge during decoding. Switch off "
                "decode_merge or use weights=exact.");
        if (cap() && merges_while_decoding_)
            throw BudgetError(
                "cap follows the published code, which does not merge during decoding. Switch off decode_merge or "
                "leave out cap.");
        published_ = PublishedWeights(context, sinks());
    }

    DecodeMerging decode_merging() const override {
        if (!merges_while_decoding_) return {};
        return {reading(context()).chunk, context().budget, context().n_tokens};
    }

 protected:
    void merge_keys(const MergeObservations& observations, Merges& merges) override {
        std::vector<HeadObservations> heads;
        for (int head = 0; head < observations.shape.n_kv_heads; ++head) heads.emplace_back(observations, head);
        std::vector<PairWeights> weights;
        if (as_published_)
            weights = published_.weights(observations, heads, merges.first);
        else
            for (const uint32_t entry : merges.first)
                for (const HeadObservations& head : heads) weights.push_back(weights_of(observations, head, entry));
        for (size_t i = 0; i < weights.size(); ++i) {
            const size_t entry = merges.first[i / heads.size()];
            const auto one = heads[i % heads.size()].key(entry), two = heads[i % heads.size()].key(entry + 1);
            for (size_t c = 0; c < one.size(); ++c)
                merges.keys.push_back(
                    static_cast<float>(weights[i].first * double{one[c]} + weights[i].second * double{two[c]}));
            merges.n_outside += weights[i].outside() ? 1 : 0;
        }
    }

 private:
    bool as_published_, merges_while_decoding_;
    PublishedWeights published_;
};

std::vector<Parameter> parameters() {
    std::vector<Parameter> all = merging_parameters();
    all.push_back(
        choice_parameter("weights", {"exact", "published"}, "exact",
                         "Weights of merged keys, from Eq. 33 (exact) or from the published code (published)."));
    all.push_back(boolean_parameter("size_factor", true,
                                    "Whether pairs of entries that cover more tokens are merged later. The published "
                                    "code ignores the number of tokens (off)."));
    all.push_back(
        boolean_parameter("decode_merge", false,
                          "Whether earlier entries are merged down to the budget after every `chunk` decoded tokens, "
                          "by the attention of these tokens. The published code never merges during decoding."));
    return all;
}

}  // namespace

Definition kvslimmer_definition() {
    return {
        .name = "kvslimmer",
        .title = "KVSlimmer",
        .paper =
            "KVSlimmer: Theoretical Insights and Practical Optimizations for Asymmetric KV Merging, 2026, "
            "arXiv:2603.00907",
        .summary =
            "Reads the prompt in chunks through its own cache and merges neighboring entries with the least attention. "
            "Values are added, and keys are weighted by the curvature of the loss.",
        .parameters = parameters(),
        .create = make_policy<KvSlimmer>,
        .remark =
            "Reading a prompt takes longer than with the full cache, because each chunk is read twice when the cache "
            "is full.",
    };
}

}  // namespace kvscope::policies
