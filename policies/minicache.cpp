#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/select_topk.h"
#include "policies/api/definition.h"

namespace kvscope::policies {

namespace {

/// Layers form pairs, from the last layer down. For each token, the layers of a merged pair share the directions of the
/// key and the value. A shared direction is interpolated at `t` from the shallower to the deeper layer. Each layer
/// keeps its own lengths. The share `retained` of a head's vectors with the largest angles stays exact.
class MiniCache : public Policy, public StoresParts, public DecidesInOrder {
 public:
    explicit MiniCache(const ParameterValues& values)
        : pairs_(values.automatic_integer("pairs")), t_(values.real("t")), retained_share_(values.real("retained")) {}

    void begin(const RunContext& context) override {
        context_ = context;
        const auto n = static_cast<double>(context.n_tokens);
        n_retained_ = std::min(static_cast<int64_t>(std::ceil(retained_share_ * n - 1e-9)), context.n_tokens);
        const int most = context.shape.n_layers / 2;
        if (pairs_ && *pairs_ > most)
            throw ParameterError(fmt::format("pairs={}: this model's {} layers form at most {} pairs", *pairs_,
                                             context.shape.n_layers, most));
        const double share = context.share_of_bytes();
        n_pairs_ = pairs_ ? static_cast<int>(*pairs_) : 0;
        while (!pairs_ && n_pairs_ <= most && bytes_share(n_pairs_) > share + 1e-9) ++n_pairs_;
        if (n_pairs_ > most || bytes_share(n_pairs_) > share + 1e-9) refuse_budget(share, pairs_ ? n_pairs_ : most);
        if (context.n_tokens == n_retained_) n_pairs_ = 0;
    }

    bool stores_parts() const override { return n_pairs_ > 0; }

    int decided_at(int layer) const override { return is_merged(layer) && !is_deeper(layer) ? layer + 1 : layer; }

    void observe(LayerObservations& observations) override {
        if (!is_merged(observations.layer) || !is_deeper(observations.layer)) return;
        deeper_keys_ = observations.keys;
        deeper_values_ = observations.values;
    }

    Selection select(LayerObservations& observations) override {
        Selection selection = select_all_tokens(context_);
        if (!is_merged(observations.layer)) return selection;
        const bool is_first = !is_deeper(observations.layer);
        if (is_first) merge_pair(observations);
        StoredLayer& stored = selection.stored.emplace();
        for (int head = 0; head < context_.shape.n_kv_heads; ++head) {
            const Merged& merged = merged_[static_cast<size_t>(head)];
            StoredRow& row = stored.rows.emplace_back();
            row.plain = merged.exact;
            for (const Entries& entries : merged.entries) {
                if (entries.positions.empty()) continue;
                row.stored.push_back({.positions = entries.positions});
                row.stored.back().keys = vectors(entries, entries.keys, observations.keys, head);
                row.stored.back().values = vectors(entries, entries.values, observations.values, head);
                if (!is_first) continue;
                for (const auto& block : {entries.keys, entries.values})
                    if (block) stored.blocks.push_back(block);
            }
        }
        if (!is_first) merged_.clear();
        return selection;
    }

 private:
    using Block = std::shared_ptr<const StoredBlock>;
    struct Entries {
        std::vector<uint32_t> positions;
        Block keys, values;  ///< shared directions; nullptr if exact
    };
    struct Merged {
        std::array<Entries, 3> entries;  ///< with both as directions, only keys, or only values
        std::vector<uint32_t> exact;
    };
    struct Directions {
        std::vector<float> shared;   ///< shape (N, d)
        std::vector<bool> is_exact;  ///< shape (N)
    };

    bool is_merged(int layer) const { return layer >= context_.shape.n_layers - 2 * n_pairs_; }
    bool is_deeper(int layer) const { return (context_.shape.n_layers - layer) % 2 == 1; }

    /// Returns the share of the full cache's bytes that a run needs. Two merged vectors take d + 2 numbers, not 2 d.
    double bytes_share(int n_pairs) const {
        const double saved = (context_.shape.head_dim - 2.0) / context_.shape.head_dim *
                             static_cast<double>(context_.n_tokens - n_retained_);
        return 1.0 - n_pairs * saved / (static_cast<double>(context_.n_tokens) * context_.shape.n_layers);
    }

    [[noreturn]] void refuse_budget(double share, int n_pairs) const {
        throw BudgetError(fmt::format(
            "a budget of {:.4g} % of the full cache is too small: this policy merges {} pair{} of this model's {} "
            "layers{}, keeps {} of {} tokens exact and needs at least {:.4g} %",
            100.0 * share, n_pairs, n_pairs == 1 ? "" : "s", context_.shape.n_layers, pairs_ ? "" : " (the maximum)",
            n_retained_, context_.n_tokens, std::ceil(1000.0 * bytes_share(n_pairs) - 1e-6) / 10.0));
    }

    void merge_pair(const LayerObservations& shallower) {
        merged_.clear();
        for (int head = 0; head < context_.shape.n_kv_heads; ++head) {
            const Directions keys = directions(shallower.keys, deeper_keys_, shallower.layer, head, "key");
            const Directions values = directions(shallower.values, deeper_values_, shallower.layer, head, "value");
            Merged& merged = merged_.emplace_back();
            for (uint32_t token = 0; token < context_.n_tokens; ++token) {
                const bool key = keys.is_exact[token], value = values.is_exact[token];
                (key && value ? merged.exact : merged.entries[key ? 2 : value ? 1 : 0].positions).push_back(token);
            }
            for (size_t i = 0; i < merged.entries.size(); ++i) {
                Entries& entries = merged.entries[i];
                if (i != 2) entries.keys = block_of(keys, entries.positions);
                if (i != 1) entries.values = block_of(values, entries.positions);
            }
        }
    }

    Directions directions(const EntriesView& shallower, const EntriesView& deeper, int layer, int head,
                          const char* what) const {
        const int d = context_.shape.head_dim;
        const auto n = static_cast<size_t>(context_.n_tokens), width = static_cast<size_t>(d);
        Directions found{std::vector<float>(n * width), std::vector<bool>(n, false)};
        std::vector<double> angles(n);
        std::vector<float> a(width), b(width);
        for (size_t token = 0; token < n; ++token) {
            read_entry(shallower, head, static_cast<int64_t>(token), d, a.data());
            read_entry(deeper, head, static_cast<int64_t>(token), d, b.data());
            angles[token] = share_direction(a, b, found.shared.data() + token * width);
            if (std::isnan(angles[token]))
                throw ScoreError(fmt::format("layers {} and {}, head {}: the {} of token {} is NaN", layer, layer + 1,
                                             head, what, token));
        }
        std::vector<uint32_t> farthest(static_cast<size_t>(n_retained_));
        kernels::select_topk(angles.data(), context_.n_tokens, n_retained_, farthest.data());
        for (const uint32_t token : farthest) found.is_exact[token] = true;
        return found;
    }

    static double norm(const std::vector<float>& vector) {
        double squares = 0;
        for (const float value : vector) squares += double{value} * value;
        return std::sqrt(squares);
    }

    /// Interpolates between the directions of a and b at t. If one vector is zero, uses the other vector's direction.
    /// @returns the angle between a and b
    double share_direction(const std::vector<float>& a, const std::vector<float>& b, float* out) const {
        const double length_a = norm(a), length_b = norm(b);
        double cosine = 1.0;
        if (length_a != 0 && length_b != 0) {
            cosine = 0.0;
            for (size_t c = 0; c < a.size(); ++c) cosine += (a[c] / length_a) * (b[c] / length_b);
        }
        if (std::isnan(cosine)) return cosine;
        const double angle = std::acos(std::clamp(cosine, -1.0, 1.0)), sine = std::sin(angle);
        double of_a = 1.0 - t_, of_b = t_;
        if (sine >= 1e-6) {
            of_a = std::sin((1.0 - t_) * angle) / sine;
            of_b = std::sin(t_ * angle) / sine;
        } else if (cosine < 0) {  // opposite directions have no shortest arc, so the nearer one is used
            of_b = t_ < 0.5 ? 0.0 : 1.0;
            of_a = 1.0 - of_b;
        }
        if (length_a == 0) of_b = 1.0;
        if (length_b == 0) of_a = 1.0;
        for (size_t c = 0; c < a.size(); ++c)
            out[c] = static_cast<float>((length_a == 0 ? 0.0 : of_a * a[c] / length_a) +
                                        (length_b == 0 ? 0.0 : of_b * b[c] / length_b));
        return angle;
    }

    Block block_of(const Directions& directions, const std::vector<uint32_t>& positions) const {
        const auto d = static_cast<std::ptrdiff_t>(context_.shape.head_dim);
        if (positions.empty()) return nullptr;
        auto block = std::make_shared<StoredBlock>();
        block->width = context_.shape.head_dim;
        for (const uint32_t position : positions) {
            const auto from = directions.shared.begin() + static_cast<std::ptrdiff_t>(position) * d;
            block->numbers.insert(block->numbers.end(), from, from + d);
        }
        return block;
    }

    /// Stores keys or values as shared `directions` with a length per vector, or exactly if `directions` is nullptr.
    StoredVectors vectors(const Entries& entries, const Block& directions, const EntriesView& view, int head) const {
        const int d = context_.shape.head_dim;
        StoredPart part{.width = d, .block = directions};
        std::vector<float> vector(static_cast<size_t>(d));
        for (size_t i = 0; directions && i < entries.positions.size(); ++i) {
            read_entry(view, head, int64_t{entries.positions[i]}, d, vector.data());
            part.scales.push_back(static_cast<float>(norm(vector)));
        }
        StoredVectors vectors;
        vectors.parts.push_back(std::move(part));
        return vectors;
    }

    std::optional<int64_t> pairs_;
    double t_, retained_share_;
    RunContext context_;
    int n_pairs_ = 0;
    int64_t n_retained_ = 0;                   ///< number of exact keys and of exact values, per head
    EntriesView deeper_keys_, deeper_values_;  ///< views of the pair to be decided next
    std::vector<Merged> merged_;               ///< one for each head (G), for the pair whose deeper layer is next
};

}  // namespace

Definition minicache_definition() {
    return {
        .name = "minicache",
        .title = "MiniCache",
        .paper =
            "Liu et al., MiniCache: KV Cache Compression in Depth Dimension for Large Language Models, NeurIPS 2024, "
            "arXiv:2405.14366",
        .summary =
            "Keeps every token. Pairs of adjacent layers, from the last layers down, share the directions of keys and "
            "values. Each layer keeps its own lengths. Vectors with the largest angles between the layers stay exact.",
        .parameters =
            {
                automatic_integer_parameter(
                    "pairs", "as many as the budget requires", {.low = 0},
                    "Number of layer pairs that are merged, from the last layers down. The paper merges the upper half "
                    "of the layers. The merged cache must fit into the budget."),
                real_parameter("t", 0.6, {.low = 0.0, .high = 1.0},
                               "Position of the shared direction between the directions of the shallower layer (0) and "
                               "the deeper layer (1)."),
                real_parameter("retained", 0.05, {.low = 0.0, .high = 1.0},
                               "Share of each head's keys and values that stay exact. These vectors have the largest "
                               "angles between the two layers of a pair."),
            },
        .create = make_policy<MiniCache>,
        .budget_of = BudgetOf::bytes,
        .remark =
            "On a CPU, decoding is slower than with the full cache, because keys are computed again at each "
            "step.",
    };
}

}  // namespace kvscope::policies
