#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/score_pooling.h"
#include "kernels/threads/parallel.h"
#include "policies/api/definition.h"
#include "policies/bases/score_operations.h"

namespace kvscope::policies {

namespace {

class GemFilter : public Policy, public FiltersPrompt {
 public:
    explicit GemFilter(const ParameterValues& values)
        : layer_(values.automatic_integer("layer")), kernel_(values.integer("kernel")) {}

    Needs needs() const override { return {.window_queries = 1, .entries = true}; }

    PromptFilter filter(const RunContext& context) const override {
        return FilterLayer{static_cast<int>(layer_.value_or(std::lround(13.0 * context.shape.n_layers / 32.0)))};
    }

    void begin(const RunContext& context) override { context_ = context; }

    Selection select(LayerObservations& observations) override {
        const auto scores = observations.shared<Scores<float>>(fmt::format("gemfilter {}", kernel_),
                                                               [&] { return scores_of(observations); });
        return select_from_scores(observations.layer, {Granularity::kv_head, *scores, {}});
    }

    Selection select_from_scores(int layer, LayerScores scores) override {
        const int64_t n = context_.n_tokens;
        const int rows = context_.shape.n_kv_heads;
        require_valid_scores(layer, scores.scores, rows, n - 1, n);
        const int64_t chosen = std::min(context_.budget, n) - 1;
        Selection selection;
        selection.rows =
            best_and_tail(scores.scores, std::vector<int64_t>(static_cast<size_t>(rows), chosen), n - 1, n);
        selection.scores = std::move(scores.scores);
        return selection;
    }

 private:
    /// Returns the last query's products q k, summed over query heads and pooled. The last token's score is NaN.
    Scores<float> scores_of(const LayerObservations& observations) const {
        const ModelShape& shape = context_.shape;
        const int64_t n = context_.n_tokens, d = shape.head_dim;
        std::vector<std::vector<double>> queries(static_cast<size_t>(shape.n_kv_heads),
                                                 std::vector<double>(static_cast<size_t>(d), 0.0));
        for (int h = 0; h < shape.n_heads; ++h) {
            const float* last = observations.window_queries.data() + ((h + 1) * observations.n_window - 1) * d;
            auto& query = queries[static_cast<size_t>(h / shape.group())];
            for (size_t c = 0; c < query.size(); ++c) query[c] += last[c];
        }
        std::vector<float> raw(static_cast<size_t>(n));
        constexpr int64_t together = 256;
        kernels::parallel_for((n + together - 1) / together, n * d * shape.n_kv_heads, [&](int64_t block) {
            std::vector<float> key(static_cast<size_t>(d));
            for (int64_t j = block * together; j < std::min((block + 1) * together, n); ++j) {
                double sum = 0.0;
                for (int g = 0; g < shape.n_kv_heads; ++g) {
                    read_entry(observations.keys, g, j, shape.head_dim, key.data());
                    const auto& query = queries[static_cast<size_t>(g)];
                    for (size_t c = 0; c < query.size(); ++c) sum += query[c] * key[c];
                }
                raw[static_cast<size_t>(j)] = static_cast<float>(sum);
            }
        });
        require_valid_scores(observations.layer, raw, 1, n, n);
        std::vector<float> pooled(raw.size());
        kernels::pool(kernels::Pooling::avg, raw.data(), n, kernel_, pooled.data());
        pooled.back() = NAN;
        std::vector<float> scores;
        for (int g = 0; g < shape.n_kv_heads; ++g) scores.insert(scores.end(), pooled.begin(), pooled.end());
        return scores;
    }

    std::optional<int64_t> layer_;
    int64_t kernel_;
    RunContext context_;
};

}  // namespace

Definition gemfilter_definition() {
    return {
        .name = "gemfilter",
        .title = "GemFilter",
        .paper =
            "Shi et al., Discovering the Gems in Early Layers: Accelerating Long-Context LLMs with 1000x Input Token "
            "Reduction, 2024, arXiv:2409.17422",
        .summary =
            "Selects the last token and the tokens whose keys have the largest products with the prompt's last query "
            "in an early layer. The model then runs again on these tokens, renumbered from 0.",
        .parameters =
            {
                automatic_integer_parameter("layer", "13 L / 32, rounded, for L layers", {.low = 0},
                                            "Index of the layer whose last query selects the tokens, counted from 0."),
                integer_parameter("kernel", 5, {.low = 1, .odd = true}, "Width of the average pooling, in tokens."),
            },
        .create = make_policy<GemFilter>,
    };
}

}  // namespace kvscope::policies
