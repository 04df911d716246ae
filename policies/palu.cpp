#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/linear.h"
#include "policies/api/definition.h"
#include "policies/methods/gram_eigenvectors.h"

namespace kvscope::policies {

namespace {

int rank_of(double share, int width) { return static_cast<int>(std::floor(share * width + 1e-6)); }

enum class Whitening { calibration, prompt, off };

Whitening whitening_of(const ParameterValues& values) {
    const std::string& name = values.text("whitening");
    return name == "prompt" ? Whitening::prompt : name == "off" ? Whitening::off : Whitening::calibration;
}

Parameter whitening_parameter() {
    Parameter parameter = choice_parameter(
        "whitening", {"calibration", "prompt", "off"}, "calibration",
        "Source of the directions. With calibration (as in the paper), the source is the keys and values of a text "
        "that the model reads once. With prompt (or `on`), the source is the prompt's keys and values, and the "
        "directions count as part of the cache. With off, the source is the model's weights.");
    parameter.aliases = {{"on", "prompt"}};
    return parameter;
}

/// Stores the D = heads * d numbers of a token's keys k (before RoPE) in a group of heads as z = B (k - b), with the
/// projection's bias b. Keys are rebuilt as B^T z + b. B (r, D) has the r = floor(share * D) leading left singular
/// vectors of the group's rows of W_K. With whitening, it has the leading eigenvectors of the sum of (k - b) (k - b)^T
/// over a text. Values are stored likewise.
class Palu : public Policy, public StoresWhileDecoding, public PreparesWeights {
 public:
    explicit Palu(const ParameterValues& values)
        : group_heads_(static_cast<int>(values.integer("group_heads"))),
          rank_share_(values.automatic_real("rank_share")),
          whitening_(whitening_of(values)) {}

    Needs needs() const override {
        return {.keys_before_rope = true,
                .calibration = whitening_ == Whitening::calibration && (groups_.empty() || stores_parts())};
    }

    void begin(const RunContext& context) override {
        context_ = context;
        groups_.clear();
        const ModelShape& shape = context.shape;
        const double share = rank_share_.value_or(context.share_of_bytes());
        for (int first = 0; first < shape.n_kv_heads; first += group_heads_) {
            Group group{.first = first, .n_heads = std::min(group_heads_, shape.n_kv_heads - first)};
            group.width = group.n_heads * shape.head_dim;
            group.rank = rank_of(share, group.width);
            if (group.rank < 1 && !rank_share_) refuse_budget(share, group.width);
            group.rank = std::clamp(group.rank, 1, group.width);
            groups_.push_back(group);
        }
        if (whitening_ == Whitening::off && stores_parts() && context.projection &&
            context.projection(0, Projected::keys).is_normalised)
            throw ParameterError(
                "this model normalizes keys after their projection, so that the weights do not determine the "
                "directions of keys. Leave out whitening=off, so that palu uses the keys of a text.");
    }

    bool prepares() const override { return whitening_ != Whitening::prompt && stores_parts(); }

    void prepare(int layer) override {
        if (!prepares()) return;
        for (const Projected which : {Projected::keys, Projected::values}) directions_of_model(layer, which);
    }

    bool stores_parts() const override {
        return std::any_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.rank < group.width; });
    }

    Selection select(LayerObservations& observations) override {
        Selection selection = select_all_tokens(context_);
        if (!stores_parts()) return selection;
        for (const Projected which : {Projected::keys, Projected::values})
            find_directions(which == Projected::keys ? observations.keys_before_rope : observations.values,
                            observations.layer, which);
        selection.stored =
            described(observations.layer, selection.rows[0], observations.keys_before_rope, observations.values);
        return selection;
    }

    StoredLayer store(const ReducedTokens& tokens) override {
        return described(tokens.layer, {tokens.positions.begin(), tokens.positions.end()}, tokens.keys_before_rope,
                         tokens.values);
    }

 private:
    struct Group {
        int first = 0, n_heads = 0;  ///< range of KV heads
        int width = 0;               ///< D, the numbers of a token in the group
        int rank = 0;                ///< r, the number of kept directions
    };

    [[noreturn]] static void refuse_budget(double share, int width) {
        throw BudgetError(
            fmt::format("a budget of {:.4g} % of the full cache is too small: this policy keeps every token and stores "
                        "at least one of {} numbers for each group of heads; it needs at least {:.4g} %",
                        100.0 * share, width, std::ceil(1000.0 / width) / 10.0));
    }

    Projection projection(int layer, Projected which) const {
        if (context_.projection) return context_.projection(layer, which);
        if (whitening_ == Whitening::off)
            throw std::logic_error("palu needs the model's projections, but no model is loaded");
        return {};
    }

    struct GroupDirections {
        std::vector<float> bias;                          ///< (D) or empty
        std::vector<float> basis;                         ///< B (r, D)
        std::vector<std::shared_ptr<const Matrix>> maps;  ///< for each head (r, d)
    };

    void find_directions(const EntriesView& view, int layer, Projected which) {
        const Projection made_with = projection(layer, which);
        auto& of_layer = directions_[{layer, which}];
        of_layer.clear();
        const auto of_model = prepares() ? directions_of_model(layer, which) : nullptr;
        for (size_t i = 0; i < groups_.size(); ++i) {
            const Group& group = groups_[i];
            GroupDirections& found = of_layer.emplace_back();
            found.bias = bias_of(made_with, group);
            const auto directions =
                of_model ? of_model->at(i)
                         : directions_of_rows(vectors_of(view, context_.n_tokens, group, found.bias), group.width);
            found.basis.assign(directions.vectors.begin(),
                               directions.vectors.begin() + std::ptrdiff_t{group.rank} * group.width);
            for (int head = 0; head < group.n_heads; ++head) found.maps.push_back(map_of(group, found.basis, head));
        }
    }

    StoredLayer described(int layer, const std::vector<uint32_t>& positions, const EntriesView& keys,
                          const EntriesView& values) const {
        StoredLayer stored;
        stored.rows.assign(static_cast<size_t>(context_.shape.n_kv_heads), {.stored = {{.positions = positions}}});
        describe(keys, layer, Projected::keys, stored);
        describe(values, layer, Projected::values, stored);
        return stored;
    }

    void describe(const EntriesView& view, int layer, Projected which, StoredLayer& stored) const {
        const auto n = static_cast<int64_t>(stored.rows[0].stored[0].positions.size());
        for (size_t i = 0; i < groups_.size(); ++i) {
            const Group& group = groups_[i];
            const GroupDirections& along = directions_.at({layer, which})[i];
            const auto vectors = vectors_of(view, n, group, along.bias);
            auto block = std::make_shared<StoredBlock>();
            block->width = group.rank;
            block->numbers.resize(static_cast<size_t>(n) * static_cast<size_t>(group.rank));
            kernels::linear({.dtype = kernels::DType::f32,
                             .n_rows = n,
                             .in = group.width,
                             .out = group.rank,
                             .x = vectors.data(),
                             .weight = along.basis.data(),
                             .y = block->numbers.data()});
            for (int head = 0; head < group.n_heads; ++head) {
                StoredEntries& entries = stored.rows[static_cast<size_t>(group.first + head)].stored[0];
                StoredVectors& of_head = which == Projected::keys ? entries.keys : entries.values;
                of_head.before_rope = which == Projected::keys;
                of_head.parts.push_back(
                    {.width = group.rank, .block = block, .map = along.maps[static_cast<size_t>(head)]});
                const auto begin = static_cast<std::ptrdiff_t>(head) * context_.shape.head_dim;
                if (!along.bias.empty())
                    of_head.offset.assign(along.bias.begin() + begin,
                                          along.bias.begin() + begin + context_.shape.head_dim);
            }
            stored.blocks.push_back(std::move(block));
        }
    }

    /// Returns no bias if keys are normalized after the projection, because the bias then has no constant effect.
    std::vector<float> bias_of(const Projection& made_with, const Group& group) const {
        if (made_with.bias.empty() || made_with.is_normalised) return {};
        const auto begin = made_with.bias.begin() + static_cast<std::ptrdiff_t>(group.first) * context_.shape.head_dim;
        return {begin, begin + group.width};
    }

    std::vector<float> rows_of(const Projection& made_with, const Group& group) const {
        const auto width = static_cast<size_t>(group.width), n_in = static_cast<size_t>(made_with.n_in);
        const float* weight =
            made_with.weight.data() + static_cast<size_t>(group.first * context_.shape.head_dim) * n_in;
        std::vector<float> transposed(n_in * width);
        for (size_t out = 0; out < width; ++out)
            for (size_t in = 0; in < n_in; ++in) transposed[in * width + out] = weight[out * n_in + in];
        return transposed;
    }

    /// Returns the group's keys or values (n, D) of the first n tokens, without the bias.
    std::vector<float> vectors_of(const EntriesView& view, int64_t n, const Group& group,
                                  const std::vector<float>& bias) const {
        const auto width = static_cast<size_t>(group.width), d = static_cast<size_t>(context_.shape.head_dim);
        std::vector<float> vectors(static_cast<size_t>(n) * width);
        for (int64_t token = 0; token < n; ++token) {
            float* to = vectors.data() + static_cast<size_t>(token) * width;
            for (int head = 0; head < group.n_heads; ++head)
                read_entry(view, group.first + head, token, context_.shape.head_dim,
                           to + static_cast<size_t>(head) * d);
            for (size_t i = 0; i < bias.size(); ++i) to[i] -= bias[i];
        }
        return vectors;
    }

    static Directions directions_of_rows(const std::vector<float>& rows, int width) {
        std::vector<double> products(static_cast<size_t>(width) * static_cast<size_t>(width), 0.0);
        accumulate_gram_matrix(rows, width, products);
        return leading_eigenvectors(products, width, width);
    }

    /// Returns all D directions of each group, computed without the prompt. Runs with any budget share the result.
    std::shared_ptr<const std::vector<Directions>> directions_of_model(int layer, Projected which) const {
        const bool is_off = whitening_ == Whitening::off;
        const auto key = fmt::format("palu {} {} of layer {}, groups of {}", is_off ? "weights" : "calibration",
                                     which == Projected::keys ? "keys" : "values", layer, group_heads_);
        return context_.of_weights<std::vector<Directions>>(key, [&] {
            std::vector<Directions> all;
            if (is_off) {
                const Projection made_with = projection(layer, which);
                for (const Group& group : groups_)
                    all.push_back(directions_of_rows(rows_of(made_with, group), group.width));
                return all;
            }
            if (!context_.calibration)
                throw std::logic_error("palu needs a model to read its calibration text, but no model is loaded");
            const std::vector<double> moments = context_.calibration(layer, which);
            for (const Group& group : groups_)
                all.push_back(leading_eigenvectors(block_of(moments, group), group.width, group.width));
            return all;
        });
    }

    std::vector<double> block_of(const std::vector<double>& moments, const Group& group) const {
        const size_t all =
            static_cast<size_t>(context_.shape.n_kv_heads) * static_cast<size_t>(context_.shape.head_dim);
        const auto first = static_cast<size_t>(group.first * context_.shape.head_dim);
        std::vector<double> block;
        for (size_t row = first; row < first + static_cast<size_t>(group.width); ++row) {
            const auto from = moments.begin() + static_cast<std::ptrdiff_t>(row * all + first);
            block.insert(block.end(), from, from + group.width);
        }
        return block;
    }

    std::shared_ptr<const Matrix> map_of(const Group& group, const std::vector<float>& basis, int head) const {
        const auto d = static_cast<size_t>(context_.shape.head_dim);
        auto map =
            std::make_shared<Matrix>(Matrix{group.rank, context_.shape.head_dim, {}, whitening_ == Whitening::prompt});
        for (int row = 0; row < group.rank; ++row) {
            const float* from = basis.data() + static_cast<size_t>(row) * static_cast<size_t>(group.width) +
                                static_cast<size_t>(head) * d;
            map->numbers.insert(map->numbers.end(), from, from + d);
        }
        return map;
    }

    int group_heads_;
    std::optional<double> rank_share_;
    Whitening whitening_;
    RunContext context_;
    std::vector<Group> groups_;
    std::map<std::pair<int, Projected>, std::vector<GroupDirections>> directions_;
};

/// Returns the share of bytes that the latents need. With whitening=prompt, adds the directions (rank, width) in f32.
double needed_share(const ParameterValues& values, double asked, const CacheSize& size) {
    const auto group_heads = static_cast<int>(values.integer("group_heads"));
    const auto n = static_cast<double>(size.n_tokens);
    double needed = 0, full = 0;
    for (int first = 0; first < size.shape.n_kv_heads; first += group_heads) {
        const int width = std::min(group_heads, size.shape.n_kv_heads - first) * size.shape.head_dim;
        const int rank = rank_of(asked, width);
        if (rank == width) return 1;  // then all groups have full rank
        const double once = whitening_of(values) == Whitening::prompt ? 4.0 * width : 0.0;
        needed += std::max(rank, 1) * (n * size.bytes_per_number + once);
        full += width * n * size.bytes_per_number;
    }
    return needed / full;
}

}  // namespace

Definition palu_definition() {
    return {
        .name = "palu",
        .title = "Palu",
        .paper = "Chang et al., Palu: KV-Cache Compression with Low-Rank Projection, ICLR 2025, arXiv:2407.21118",
        .summary =
            "Keeps every token as its components along a few directions. Each group of heads has its own directions. "
            "In these directions, the keys and values of a calibration text have the largest components.",
        .parameters =
            {
                integer_parameter(
                    "group_heads", 4, {.low = 1},
                    "Number of KV heads in a group. A group stores its keys together and its values together."),
                automatic_real_parameter("rank_share", "the share that the budget requests",
                                         {.low = 0.0, .high = 1.0, .low_open = true},
                                         "Share of a group's directions that are kept. Tokens need the same share of "
                                         "the full cache's bytes. A given share replaces the budget."),
                whitening_parameter(),
            },
        .create = make_policy<Palu>,
        .budget_of = BudgetOf::bytes,
        .own_share = [](const ParameterValues& values) { return values.automatic_real("rank_share"); },
        .needed_share = needed_share,
        .remark =
            "On a CPU, decoding is slower than with the full cache, because keys are computed again at each step. With "
            "whitening=prompt, the directions are stored with the prompt in f32, and their bytes count. For N tokens "
            "and groups of D numbers, the directions increase the requested share by a factor of 1 + 2 D / N in bf16 "
            "and 1 + D / N in f32 (by 9 % and 5 % at 4,096 tokens and D = 192). With whitening=off, models with few KV "
            "heads no longer answer correctly.",
    };
}

}  // namespace kvscope::policies
