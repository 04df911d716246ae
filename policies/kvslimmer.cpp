#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "policies/interface/entry_averages.h"
#include "policies/interface/merging_policy.h"

namespace kvscope::policies {

namespace {

/// What a KV head's queries attend to, and what they get: means over the queries and the group.
struct HeadObservations {
    std::vector<double> attention;  ///< (n) n_i exp(e_i) over the sum of all
    std::vector<double> output;     ///< (d)
    std::vector<float> keys;        ///< (n, d)
    std::vector<float> values;      ///< (n, d) sums over an entry's tokens

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

/// The two keys' weights, which add up to 1.
struct PairWeights {
    double first = 0.5, second = 0.5;
    bool outside() const { return first < 0 || second < 0; }
};

/// (|c11| - |c12|) : (|c22| - |c12|), 2-norms, of their sum; alike where that vanishes.
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

/// The weights as the published code computes them. With alpha the attention over the entries behind the sinks alone, o
/// = sum alpha v and v the entries' sums: h = alpha (1 - 2 alpha) |v - o|, 1-norms, averaged over the chunks (the
/// newest has the share 1 / k behind k others, and all of an entry that it is the first to look at). Then c12 = alpha_m
/// alpha_{m+1} (x_m + x_{m+1}), x = h / (alpha (1 - 2 alpha)), and h - c12 are the weights' shares. A merged entry
/// carries w_m^2 h_m + w_{m+1}^2 h_{m+1}. Two departures: equal shares where they add up to 0, for which the code has a
/// key of zeros; and, behind the prompt, where it never merges, the last chunk's entries take what the last query says.
class PublishedWeights {
 public:
    explicit PublishedWeights(const RunContext& context = {}, int64_t sinks = 0) : sinks_(static_cast<size_t>(sinks)) {
        for (int layer = 0; layer < context.shape.n_layers; ++layer)
            layers_.push_back({EntryAverages(context.shape.n_kv_heads), -1});
    }

    /// (pairs, G)
    std::vector<PairWeights> weights(const MergeObservations& observations, const std::vector<HeadObservations>& heads,
                                     std::span<const uint32_t> first) {
        std::vector<std::vector<double>> alpha;
        for (const HeadObservations& head : heads) alpha.push_back(alpha_of(head));
        EntryAverages& averages = look(observations, heads, alpha);
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
        EntryAverages averages;
        int64_t last_look = -1;  // chunks that were read before it; one more behind the prompt
    };

    std::vector<double> alpha_of(const HeadObservations& head) const {
        std::vector<double> alpha(head.attention.size(), 0.0);
        double sum = 0;
        for (size_t i = sinks_; i < alpha.size(); ++i) sum += head.attention[i];
        for (size_t i = sinks_; i < alpha.size(); ++i) alpha[i] = head.attention[i] / (sum + tiny);
        return alpha;
    }

    /// Takes in a chunk's h, once, however many rounds of merging it takes.
    EntryAverages& look(const MergeObservations& observations, const std::vector<HeadObservations>& heads,
                        const std::vector<std::vector<double>>& alpha) {
        Layer& layer = layers_[static_cast<size_t>(observations.layer)];
        layer.averages.resize(observations.n_entries);
        const int64_t number = observations.n_chunks + (observations.behind_prompt ? 1 : 0);
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
        const double share = observations.behind_prompt ? 0.0 : 1 / std::max(1.0, static_cast<double>(number));
        layer.averages.take(now, [&](int64_t) { return share; });
        return layer.averages;
    }

    size_t sinks_;
    std::vector<Layer> layers_;
};

/// Merges neighbouring entries where they matter least, with the keys' weights from the exact Hessian of the loss with
/// respect to the two keys, of which the forward pass alone has everything that does not cancel (its Eq. 33):
/// k* = ((|c11| - |c12|) k_m + (|c22| - |c12|) k_{m+1}) / (|c11| - 2 |c12| + |c22|).
class KvSlimmer : public MergingPolicy {
 public:
    explicit KvSlimmer(const ParameterValues& values)
        : MergingPolicy(values),
          as_published_(values.text("weights") == "published"),
          merges_while_decoding_(values.boolean("decode_merge")) {}

    void begin(const RunContext& context) override {
        MergingPolicy::begin(context);
        if (merges_while_decoding_ && context.budget <= sinks() + 1)
            throw BudgetError(fmt::format(
                "decode_merge: a budget of {} entries, of which {} are sinks, leaves nothing to merge decoded tokens "
                "into: it needs at least {}, or fewer sinks",
                context.budget, sinks(), sinks() + 2));
        if (as_published_ && merges_while_decoding_)
            throw BudgetError(
                "weights=published follows its code, which never merges while it decodes: leave out decode_merge, or "
                "take the exact weights");
        if (cap() && merges_while_decoding_)
            throw BudgetError(
                "cap follows its code, which never merges while it decodes: leave out decode_merge, or cap");
        published_ = PublishedWeights(context, sinks());
    }

    DecodeMerging decode_merging() const override {
        if (!merges_while_decoding_) return {};
        return {plan(context()).chunk, context().budget, context().n_tokens};
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
    all.push_back(choice_parameter("weights", {"exact", "published"}, "exact",
                                   "The merged keys' weights: by Eq. 33, or as its code computes them."));
    all.push_back(boolean_parameter("size_factor", true,
                                    "Pairs of more tokens are merged later; off in its code, where the factor has "
                                    "become a constant."));
    all.push_back(boolean_parameter("decode_merge", false,
                                    "Behind every `chunk` decoded tokens, merge what lies before them back to the "
                                    "budget by what they attend to; its code never merges while it decodes."));
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
            "Reads the prompt in chunks through its own cache and merges neighbouring entries that are attended to "
            "least: values add up, keys are weighed by how sharply the loss bends in them.",
        .parameters = parameters(),
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<KvSlimmer>(values);
        },
        .remark = "Each chunk is read twice once the cache is full, and so a prompt takes longer than its prefill.",
    };
}

}  // namespace kvscope::policies
