#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/counted.h"
#include "kernels/select_topk.h"
#include "kernels/threads/parallel.h"
#include "policies/api/common_parameters.h"
#include "policies/api/definition.h"
#include "policies/bases/score_operations.h"

namespace kvscope::policies {

namespace {

class LongCache : public Policy, public Gathers {
 public:
    explicit LongCache(const ParameterValues& values)
        : sinks_(values.integer("sinks")),
          given_recent_(values.automatic_integer("recent")),
          chunk_(values.integer("chunk")),
          reduction_(reduction_of(values)),
          granularity_(granularity_of(values)),
          positions_(key_positions_of(values)) {}

    Needs needs() const override { return {.window_queries = 1}; }

    void begin(const RunContext& context) override {
        recent_ = given_recent_.value_or(std::max<int64_t>(context.budget - sinks_, 0) / 2);
        if (context.budget < context.n_tokens && context.budget <= sinks_ + recent_) {
            throw BudgetError(
                "a budget of " + counted(context.budget, "entry") + " is not above the " + std::to_string(sinks_) +
                " sinks and the " + std::to_string(recent_) +
                " recent entries, which are always kept. Give a larger budget, fewer sinks or a smaller `recent`.");
        }
        context_ = context;
    }

    void gather(LayerObservations& observations) override { shared_scores(observations); }

    Selection select(LayerObservations& observations) override {
        return select_from_scores(observations.layer, {granularity_, *shared_scores(observations), {}});
    }

    Selection select_from_scores(int layer, LayerScores scores) override {
        const int64_t n = context_.n_tokens;
        const int rows = n_rows(context_.shape, granularity_);
        require_valid_scores(layer, scores.scores, rows, n, n);
        Selection selection;
        selection.granularity = granularity_;
        selection.rows.resize(static_cast<size_t>(rows));
        kernels::parallel_for(rows, rows * n, [&](int64_t row) {
            selection.rows[static_cast<size_t>(row)] = kept(
                std::span<const float>(scores.scores).subspan(static_cast<size_t>(row * n), static_cast<size_t>(n)));
        });
        selection.scores = std::move(scores.scores);
        return selection;
    }

    Positions positions() const override { return positions_; }

 private:
    std::shared_ptr<const Scores<float>> shared_scores(LayerObservations& observations) const {
        const std::string key =
            fmt::format("longcache {} {}", static_cast<int>(reduction_), static_cast<int>(granularity_));
        return observations.shared<Scores<float>>(key, [&] {
            const std::vector<float>& attention = observations.window_attention(1, 0.0f, SoftmaxRange::visible);
            return reduce_scores_by_head<float>(context_.shape, granularity_, reduction_, attention.data(),
                                                context_.n_tokens);
        });
    }

    std::vector<uint32_t> kept(std::span<const float> scores) const {
        const int64_t n = context_.n_tokens;
        const int64_t budget = std::min(context_.budget, n);
        const int64_t first = std::min(sinks_, budget), end = n - std::min(recent_, budget - first);
        const std::span<const float> between =
            scores.subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
        std::vector<uint32_t> kept(static_cast<size_t>(first));
        std::iota(kept.begin(), kept.end(), 0u);
        for (uint32_t i : best_chunks(between, budget - first - (n - end))) {
            kept.push_back(static_cast<uint32_t>(first) + i);
        }
        for (int64_t i = end; i < n; ++i) kept.push_back(static_cast<uint32_t>(i));
        return kept;
    }

    /// Returns `count` indices of `scores`: whole chunks, ordered by their best entry, then the best entries of the
    /// next chunk.
    std::vector<uint32_t> best_chunks(std::span<const float> scores, int64_t count) const {
        struct Chunk {
            int64_t begin, size;
            float best;
        };
        const auto n = static_cast<int64_t>(scores.size());
        if (const int64_t place = kernels::find_nan(scores.data(), n); place >= 0) throw kernels::NanScore(0, place);
        std::vector<Chunk> chunks;
        for (int64_t at = 0; at < n; at += chunk_) {
            const int64_t size = std::min(chunk_, n - at);
            chunks.push_back({at, size, *std::max_element(scores.begin() + at, scores.begin() + at + size)});
        }
        std::stable_sort(chunks.begin(), chunks.end(), [](const Chunk& a, const Chunk& b) { return a.best > b.best; });
        std::vector<uint32_t> places;
        for (const Chunk& chunk : chunks) {
            const int64_t taken = std::min(chunk.size, count - static_cast<int64_t>(places.size()));
            std::vector<uint32_t> best(static_cast<size_t>(taken));
            kernels::select_topk(scores.data() + chunk.begin, chunk.size, taken, best.data());
            for (uint32_t i : best) places.push_back(static_cast<uint32_t>(chunk.begin) + i);
        }
        std::sort(places.begin(), places.end());
        return places;
    }

    int64_t sinks_;
    std::optional<int64_t> given_recent_;
    int64_t chunk_;
    kernels::HeadReduction reduction_;
    Granularity granularity_;
    Positions positions_;
    RunContext context_;
    int64_t recent_ = 0;
};

}  // namespace

Definition longcache_definition() {
    return {
        .name = "longcache",
        .title = "LongCache",
        .paper =
            "Liu et al., Farewell to Length Extrapolation, a Training-Free Infinite Context with Finite Attention "
            "Scope, 2024, arXiv:2407.15176v1 (later ReAttention, ICLR 2025)",
        .summary =
            "Keeps the first entries, the recent entries and the best chunks in between. Chunks are ranked by the "
            "largest attention of the prompt's last query to one of their entries. If the budget ends within a chunk, "
            "the best entries of this chunk are kept. The original method evicts nothing and selects entries again at "
            "each step, by queries and keys before RoPE. The published code keeps 32 first entries, 4,096 or 8,192 "
            "recent entries, and a span of 32 entries around each of the 1 to 4 best entries. KVSlimmer's paper "
            "compares with this method, but does not state the settings.",
        .parameters =
            {
                mark_as_after_scoring(integer_parameter(
                    "sinks", 4, {.low = 0}, "Number of first entries that are always kept (attention sinks).")),
                mark_as_after_scoring(
                    automatic_integer_parameter("recent", "half of the budget without the sinks, rounded down",
                                                {.low = 0}, "Number of last entries that are always kept.")),
                mark_as_after_scoring(integer_parameter(
                    "chunk", 32, {.low = 1}, "Number of entries in a chunk. The first chunk starts after the sinks.")),
                reduce_parameter(),
                granularity_parameter(),
                key_positions_parameter(),
            },
        .create = make_policy<LongCache>,
    };
}

}  // namespace kvscope::policies
