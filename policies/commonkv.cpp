#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/linear.h"
#include "kernels/select_topk.h"
#include "policies/api/definition.h"
#include "policies/methods/gram_eigenvectors.h"

namespace kvscope::policies {

namespace {

double share_of(double share, int64_t n) { return std::floor(share * static_cast<double>(n) + 1e-9); }

/// Returns an upper bound for the number of latents. @param n_forced number of tokens with a latent in each layer
double most_latents_of(int n_layers, int64_t n_tokens, int layer_step, int64_t n_forced, double unlike, bool of_model) {
    const double n = static_cast<double>(n_tokens);
    const double forced = std::min(static_cast<double>(n_forced), n);
    const int step = std::min(layer_step, n_layers);
    double shared = 0, own = 0, most = 0;
    int64_t n_groups = 0;
    for (int first = 0; first < n_layers; first += step, ++n_groups) {
        const int others = std::min(step, n_layers - first) - 1;
        shared += n;
        own += others * std::min(forced + (of_model ? 0.0 : share_of(unlike, n_tokens)), n);
        most += others * n;
    }
    if (of_model) own += (step - 1) * share_of(unlike, n_tokens * n_groups);
    return shared + std::min(own, most);
}

/// Returns the share of bytes that the latents need if `rank` is given. Returns `asked` otherwise.
double needed_share(const ParameterValues& values, double asked, const CacheSize& size) {
    const auto rank = values.automatic_integer("rank");
    const ModelShape& shape = size.shape;
    if (!rank || shape.n_layers < 1 || size.n_tokens < 1) return asked;
    const double latents = most_latents_of(
        shape.n_layers, size.n_tokens, static_cast<int>(values.integer("layer_step")),
        values.integer("sinks") + values.integer("recent"), values.real("unlike"), values.text("scope") == "model");
    return static_cast<double>(*rank) * latents /
           (2.0 * shape.n_layers * shape.n_kv_heads * shape.head_dim * static_cast<double>(size.n_tokens));
}

/// Keeps every token. For a group of `layer_step` layers, the stacked W_K and W_V are decomposed into U S V^T. A token
/// with the projections' input x is stored as the latent z = S_r^1/2 V_r^T x. A layer's rows of U_r S_r^1/2, plus the
/// biases, turn z into keys and values. The layers of a group store the mean of their latents. Each layer stores its
/// own latent for the first `sinks` and last `recent` tokens, and for the share `unlike` of tokens with the smallest
/// cosine between the latents of the group's first and last layer. `scope=model` chooses these tokens over all groups
/// after the last layer. Until then, all full caches stay in memory.
class CommonKv : public Policy, public StoresParts, public DecidesInOrder, public PreparesWeights {
 public:
    explicit CommonKv(const ParameterValues& values)
        : given_step_(static_cast<int>(values.integer("layer_step"))),
          given_rank_(values.automatic_integer("rank")),
          sinks_(values.integer("sinks")),
          recent_(values.integer("recent")),
          unlike_(values.real("unlike")),
          of_model_(values.text("scope") == "model") {}

    Needs needs() const override { return {.projection_inputs = true}; }

    void begin(const RunContext& context) override {
        context_ = context;
        const ModelShape& shape = context.shape;
        groups_.clear();
        layer_step_ = std::min(given_step_, shape.n_layers);
        for (int first = 0; first < shape.n_layers; first += layer_step_)
            groups_.push_back({.first = first, .n_layers = std::min(layer_step_, shape.n_layers - first)});
        latents_.assign(static_cast<size_t>(shape.n_layers), {});
        maps_.assign(static_cast<size_t>(shape.n_layers), {});
        n_stored_ = 0;
        const double share = context.share_of_bytes();
        rank_ = stride_ = given_rank_ ? static_cast<int>(*given_rank_) : 0;
        if (!stores_parts() || !context.projection) return;
        const Projection keys = context.projection(0, Projected::keys);
        if (keys.is_normalised)
            throw ParameterError(
                "this model normalizes keys after their projection, so that keys and values have no common latent. "
                "commonkv cannot compress it, but palu can.");
        const int most = std::min(keys.n_in, 2 * layer_step_ * keys.n_out);
        if (given_rank_ && *given_rank_ > most)
            throw ParameterError(
                fmt::format("rank={}: this model's projections have at most {} directions", *given_rank_, most));
        if (given_rank_) return;
        const double rank = share * full_numbers() / most_latents();
        if (rank < 1.0 - 1e-6)
            throw BudgetError(
                fmt::format("a budget of {:.4g} % of the full cache is too small: this policy stores at least one "
                            "number per token and needs at least {:.4g} %",
                            100.0 * share, std::ceil(1000.0 * most_latents() / full_numbers()) / 10.0));
        const auto at_most = [most](double numbers) {
            return static_cast<int>(std::min(std::floor(numbers + 1e-6), static_cast<double>(most)));
        };
        rank_ = at_most(rank);
        stride_ = of_model_ ? at_most(share * full_numbers() / least_latents()) : rank_;
    }

    bool prepares() const override { return stores_parts(); }

    void prepare(int layer) override {
        if (stores_parts() && group_of(layer).first == layer) directions_of(group_of(layer));
    }

    bool stores_parts() const override { return given_rank_ || context_.share_of_bytes() < 1.0; }

    int decided_at(int layer) const override {
        return of_model_ ? context_.shape.n_layers - 1 : group_of(layer).first + group_of(layer).n_layers - 1;
    }

    void observe(LayerObservations& observations) override {
        if (!stores_parts()) return;
        if (!context_.projection)
            throw std::logic_error("commonkv needs the model's projections, but no model is loaded");
        const int layer = observations.layer;
        if (group_of(layer).first == layer) factor(group_of(layer));
        auto& latents = latents_[static_cast<size_t>(layer)];
        latents.resize(static_cast<size_t>(context_.n_tokens) * static_cast<size_t>(stride_));
        kernels::linear({.dtype = kernels::DType::f32,
                         .n_rows = context_.n_tokens,
                         .in = static_cast<int64_t>(observations.projection_inputs.size()) / context_.n_tokens,
                         .out = stride_,
                         .x = observations.projection_inputs.data(),
                         .weight = common_.data(),
                         .y = latents.data()});
    }

    Selection select(LayerObservations& observations) override {
        const int layer = observations.layer;
        Selection selection = select_all_tokens(context_);
        if (!stores_parts()) return selection;
        const Group& group = group_of(layer);
        StoredLayer& stored = selection.stored.emplace();
        if (layer == group.first) {
            if (!of_model_ || layer == 0) choose(of_model_ ? groups_ : std::vector<Group>{group});
            shared_ = mean_block(group);
            if (shared_) stored.blocks.push_back(shared_);
        }
        const auto own = own_block(group, layer);
        if (own) stored.blocks.push_back(own);
        for (int head = 0; head < context_.shape.n_kv_heads; ++head) {
            StoredRow& row = stored.rows.emplace_back();
            if (shared_) row.stored.push_back(entries(group, false, shared_, layer, head));
            if (own) row.stored.push_back(entries(group, true, own, layer, head));
        }
        std::vector<float>().swap(latents_[static_cast<size_t>(layer)]);  // also frees the memory
        maps_[static_cast<size_t>(layer)] = {};
        require_budget(stored, layer);
        return selection;
    }

 private:
    struct Group {
        int first = 0, n_layers = 0;
    };
    struct HeadMap {
        std::shared_ptr<const Matrix> map;  ///< (r, d), or (stride, d) before the rank is known
        std::vector<float> offset;          ///< (d) or empty
    };
    struct LayerMaps {
        std::vector<HeadMap> keys, values;  ///< shape (G)
    };
    using Block = std::shared_ptr<const StoredBlock>;

    const Group& group_of(int layer) const { return groups_[static_cast<size_t>(layer / layer_step_)]; }

    double full_numbers() const {
        const ModelShape& shape = context_.shape;
        return 2.0 * shape.n_layers * shape.n_kv_heads * shape.head_dim * static_cast<double>(context_.n_tokens);
    }

    double n_unlike(int64_t n) const { return share_of(unlike_, n); }

    /// Returns an upper bound for the number of latents. The rank is chosen before the unlike tokens are known.
    double most_latents() const {
        return most_latents_of(context_.shape.n_layers, context_.n_tokens, layer_step_, sinks_ + recent_, unlike_,
                               of_model_);
    }

    /// Returns a lower bound for the number of latents with scope=model.
    double least_latents() const {
        const double n = static_cast<double>(context_.n_tokens);
        const double forced = std::min(static_cast<double>(sinks_ + recent_), n);
        std::vector<int> others;  // for each group, number of additional latents per unlike token
        double latents = 0;
        for (const Group& group : groups_) {
            others.push_back(group.n_layers - 1);
            latents += n + others.back() * forced;
        }
        std::sort(others.begin(), others.end());
        double left = n_unlike(context_.n_tokens * static_cast<int64_t>(groups_.size())) -
                      forced * static_cast<double>(groups_.size());
        for (const int more : others) {
            if (left <= 0) break;
            latents += more * std::min(left, n - forced);
            left -= n - forced;
        }
        return latents;
    }

    void require_budget(const StoredLayer& stored, int layer) {
        for (const auto& block : stored.blocks) n_stored_ += static_cast<double>(block->numbers.size());
        const double share = n_stored_ / full_numbers();
        if (layer == context_.shape.n_layers - 1 && share > context_.share_of_bytes() + 1e-9)
            throw BudgetError(
                fmt::format("rank={} needs {:.4g} % of the full cache for this prompt, but the budget is {:.4g} %",
                            rank_, std::ceil(1000.0 * share) / 10.0, 100.0 * context_.share_of_bytes()));
    }

    /// Returns the eigenvectors V and eigenvalues S^2 of the group's W^T W.
    std::shared_ptr<const Directions> directions_of(const Group& group) const {
        return context_.of_weights<Directions>(fmt::format("commonkv {}+{}", group.first, group.n_layers), [&] {
            std::vector<double> products;
            int width = 0, n_rows = 0;
            for (int layer = group.first; layer < group.first + group.n_layers; ++layer)
                for (const auto which : {Projected::keys, Projected::values}) {
                    const Projection projection = context_.projection(layer, which);
                    width = projection.n_in;
                    n_rows += projection.n_out;
                    products.resize(static_cast<size_t>(width) * static_cast<size_t>(width), 0.0);
                    accumulate_gram_matrix(projection.weight, width, products);
                }
            return leading_eigenvectors(products, width, std::min(width, n_rows));
        });
    }

    /// Computes the group's S_r^1/2 V_r^T and each layer's map from latents to keys and values, U S^1/2 = W V S^-1/2.
    void factor(const Group& group) {
        const auto of_group = directions_of(group);
        const Directions& directions = *of_group;
        const auto n_known = directions.eigenvalues.size(), width = directions.vectors.size() / n_known;
        common_.assign(static_cast<size_t>(stride_) * width, 0.0f);
        std::vector<float> back(common_.size(), 0.0f);
        for (size_t i = 0; i < std::min(static_cast<size_t>(stride_), n_known); ++i) {
            if (!(directions.eigenvalues[i] > 1e-14 * directions.eigenvalues[0])) break;
            const double root = std::pow(directions.eigenvalues[i], 0.25);
            for (size_t c = 0; c < width; ++c) {
                const double direction = double{directions.vectors[i * width + c]};
                common_[i * width + c] = static_cast<float>(root * direction);
                back[i * width + c] = static_cast<float>(direction / root);
            }
        }
        for (int layer = group.first; layer < group.first + group.n_layers; ++layer)
            maps_[static_cast<size_t>(layer)] = {head_maps(context_.projection(layer, Projected::keys), back),
                                                 head_maps(context_.projection(layer, Projected::values), back)};
    }

    std::vector<HeadMap> head_maps(const Projection& projection, const std::vector<float>& back) const {
        const auto rank = static_cast<size_t>(stride_), n_out = static_cast<size_t>(projection.n_out),
                   d = static_cast<size_t>(context_.shape.head_dim);
        std::vector<float> rows(rank * n_out);  // S_r^-1/2 V_r^T W^T
        kernels::linear({.dtype = kernels::DType::f32,
                         .n_rows = stride_,
                         .in = projection.n_in,
                         .out = projection.n_out,
                         .x = back.data(),
                         .weight = projection.weight.data(),
                         .y = rows.data()});
        std::vector<HeadMap> maps;
        for (size_t first = 0; first < n_out; first += d) {
            auto map = std::make_shared<Matrix>(Matrix{stride_, context_.shape.head_dim, {}});
            for (size_t i = 0; i < rank; ++i) {
                const auto from = rows.begin() + static_cast<std::ptrdiff_t>(i * n_out + first);
                map->numbers.insert(map->numbers.end(), from, from + static_cast<std::ptrdiff_t>(d));
            }
            HeadMap& of_head = maps.emplace_back(HeadMap{std::move(map), {}});
            const auto bias = projection.bias.begin() + static_cast<std::ptrdiff_t>(first);
            if (!projection.bias.empty()) of_head.offset.assign(bias, bias + static_cast<std::ptrdiff_t>(d));
        }
        return maps;
    }

    const float* latent(int layer, size_t token) const {
        return latents_[static_cast<size_t>(layer)].data() + token * static_cast<size_t>(stride_);
    }

    struct Likeness {
        double product = 0, squares_a = 0, squares_b = 0;

        void add(double a, double b) {
            product += a * b;
            squares_a += a * a;
            squares_b += b * b;
        }
        double cosine() const {
            return squares_a > 0 && squares_b > 0 ? product / std::sqrt(squares_a * squares_b) : product;
        }
    };

    /// Chooses the tokens that have a latent in each layer and, with scope=model, the rank.
    void choose(const std::vector<Group>& groups) {
        own_.resize(groups_.size());
        std::vector<Likeness> likeness(groups.size() * static_cast<size_t>(context_.n_tokens));
        add_numbers(groups, 0, rank_, likeness);
        choose_own(groups, likeness);
        if (stride_ == rank_) return;
        auto best = own_;
        const int surely = rank_;
        for (int rank = surely + 1; rank <= stride_; ++rank) {
            add_numbers(groups, rank - 1, rank, likeness);
            choose_own(groups, likeness);
            if (rank * n_latents() > context_.share_of_bytes() * full_numbers() + 1e-6) continue;
            rank_ = rank;
            best = own_;
        }
        own_ = std::move(best);
        for (LayerMaps& of_layer : maps_)
            for (auto* maps : {&of_layer.keys, &of_layer.values})
                for (HeadMap& map : *maps) map.map = std::make_shared<Matrix>(leading_rows(*map.map, rank_));
    }

    static Matrix leading_rows(const Matrix& matrix, int n) {
        const auto numbers = matrix.numbers.begin();
        return {n, matrix.n_columns, {numbers, numbers + std::ptrdiff_t{n} * matrix.n_columns}};
    }

    void add_numbers(const std::vector<Group>& groups, int from, int to, std::vector<Likeness>& likeness) const {
        size_t at = 0;
        for (const Group& group : groups)
            for (size_t token = 0; token < static_cast<size_t>(context_.n_tokens); ++token, ++at) {
                const float *a = latent(group.first, token), *b = latent(group.first + group.n_layers - 1, token);
                for (int i = from; i < to; ++i) likeness[at].add(double{a[i]}, double{b[i]});
            }
    }

    double n_latents() const {
        double n = 0;
        for (size_t i = 0; i < groups_.size(); ++i) {
            const auto own = static_cast<double>(std::count(own_[i].begin(), own_[i].end(), true));
            n += static_cast<double>(context_.n_tokens) - own + own * groups_[i].n_layers;
        }
        return n;
    }

    void choose_own(const std::vector<Group>& groups, const std::vector<Likeness>& likeness) {
        const auto n = static_cast<size_t>(context_.n_tokens);
        std::vector<double> distances;
        for (const Likeness& of : likeness) {
            distances.push_back(-of.cosine());
            if (!std::isnan(distances.back())) continue;
            const Group& group = groups[(distances.size() - 1) / n];
            throw ScoreError(fmt::format("layers {} to {}: the latent of token {} is NaN", group.first,
                                         group.first + group.n_layers - 1, (distances.size() - 1) % n));
        }
        const auto n_all = static_cast<int64_t>(distances.size());
        const auto n_chosen = static_cast<int64_t>(n_unlike(n_all));
        std::vector<uint32_t> unlike(static_cast<size_t>(n_chosen));
        kernels::select_topk(distances.data(), n_all, n_chosen, unlike.data());
        for (const Group& group : groups) {
            auto& is_own = own_[static_cast<size_t>(group.first / layer_step_)];
            is_own.assign(n, group.n_layers == 1);
            for (size_t token = 0; token < n; ++token)
                if (static_cast<int64_t>(token) < sinks_ || static_cast<int64_t>(n - token) <= recent_)
                    is_own[token] = true;
        }
        for (const uint32_t at : unlike) own_[static_cast<size_t>(groups[at / n].first / layer_step_)][at % n] = true;
    }

    std::vector<uint32_t> tokens(const Group& group, bool own) const {
        std::vector<uint32_t> found;
        const auto& is_own = own_[static_cast<size_t>(group.first / layer_step_)];
        for (uint32_t token = 0; token < context_.n_tokens; ++token)
            if (is_own[token] == own) found.push_back(token);
        return found;
    }

    Block own_block(const Group& group, int layer) const {
        auto block = std::make_shared<StoredBlock>(StoredBlock{.width = rank_});
        for (const uint32_t token : tokens(group, true)) {
            const float* from = latent(layer, token);
            block->numbers.insert(block->numbers.end(), from, from + rank_);
        }
        return block->numbers.empty() ? nullptr : block;
    }

    Block mean_block(const Group& group) const {
        auto block = std::make_shared<StoredBlock>(StoredBlock{.width = rank_});
        std::vector<double> mean(static_cast<size_t>(rank_));
        for (const uint32_t token : tokens(group, false)) {
            std::fill(mean.begin(), mean.end(), 0.0);
            for (int layer = group.first; layer < group.first + group.n_layers; ++layer)
                for (size_t i = 0; i < mean.size(); ++i) mean[i] += double{latent(layer, token)[i]};
            for (const double sum : mean) block->numbers.push_back(static_cast<float>(sum / group.n_layers));
        }
        return block->numbers.empty() ? nullptr : block;
    }

    StoredEntries entries(const Group& group, bool own, const Block& block, int layer, int head) const {
        StoredEntries entries;
        entries.positions = tokens(group, own);
        const LayerMaps& maps = maps_[static_cast<size_t>(layer)];
        const auto of = [&](const HeadMap& map) {
            StoredVectors vectors;
            vectors.parts.push_back({.width = rank_, .block = block, .map = map.map});
            vectors.offset = map.offset;
            return vectors;
        };
        entries.keys = of(maps.keys[static_cast<size_t>(head)]);
        entries.keys.before_rope = true;
        entries.values = of(maps.values[static_cast<size_t>(head)]);
        return entries;
    }

    int given_step_;
    std::optional<int64_t> given_rank_;
    int64_t sinks_, recent_;
    double unlike_;
    bool of_model_;
    RunContext context_;
    int layer_step_ = 1;  ///< layers per group, at most all layers
    int rank_ = 0;        ///< stored numbers per latent
    int stride_ = 0;      ///< computed numbers per latent, the largest possible rank
    std::vector<Group> groups_;
    std::vector<float> common_;                ///< (stride, hidden) S^1/2 V^T of the group being observed
    std::vector<std::vector<float>> latents_;  ///< latents (N, stride) of each undecided layer
    std::vector<LayerMaps> maps_;              ///< maps of each undecided layer
    /// For each group and token (N), whether each layer stores its own latent.
    std::vector<std::vector<bool>> own_;
    Block shared_;  ///< block of the group being decided; nullptr if no latents are shared
    double n_stored_ = 0;
};

}  // namespace

Definition commonkv_definition() {
    return {
        .name = "commonkv",
        .title = "CommonKV",
        .paper =
            "Wang et al., CommonKV: Compressing KV Cache with Cross-layer Parameter Sharing, 2025, arXiv:2508.16134",
        .summary =
            "Keeps every token as a low-rank latent from which keys and values are computed. Groups of adjacent layers "
            "share the mean of their latents, except for tokens whose latents differ most. With scope=model, all "
            "layers' full caches are held until the last layer is read.",
        .parameters =
            {
                integer_parameter("layer_step", 4, {.low = 1}, "Number of adjacent layers in a group."),
                automatic_integer_parameter("rank", "the largest rank that fits into the budget", {.low = 1},
                                            "Length of a latent. The latents must fit into the budget. For tokens with "
                                            "a latent in each layer, a rank above 2 G d (the length of the keys and "
                                            "values of all KV heads) takes more memory than the full cache."),
                integer_parameter("sinks", 4, {.low = 0},
                                  "Number of first tokens for which each layer keeps its own latent."),
                integer_parameter("recent", 128, {.low = 0},
                                  "Number of last prompt tokens for which each layer keeps its own latent."),
                real_parameter("unlike", 0.4, {.low = 0.0, .high = 1.0},
                               "Share of tokens for which each layer keeps its own latent. These tokens have the least "
                               "similar latents in the first and last layer of a group."),
                choice_parameter("scope", {"model", "group"}, "model",
                                 "Whether `unlike` is a share of the tokens of all groups together (model, as in the "
                                 "published code) or of each group's tokens (group)."),
            },
        .create = make_policy<CommonKv>,
        .budget_of = BudgetOf::bytes,
        .needed_share = needed_share,
        .remark =
            "On a CPU, decoding is slower than with the full cache, because keys are computed again at each "
            "step.",
    };
}

}  // namespace kvscope::policies
