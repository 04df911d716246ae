#include "analysis/measures/wrong_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "analysis/measures/evidence.h"
#include "kernels/threads/parallel.h"
#include "trace/records/schema.h"

namespace kvscope::analysis {
namespace {

/// The head that lacks the fewest entries to keep a token.
struct Gap {
    size_t entries = std::numeric_limits<size_t>::max();
    size_t layer = 0;
    size_t row = 0;
};

/// How close a layer, or the run, is to keeping a lost token.
struct Lost {
    Gap gap;
    bool is_kept_together = false;
};

/// The scores of one layer, and which tokens its rows keep.
template <class T>
class RankedLayer {
 public:
    RankedLayer(std::span<const T> scores, const KeptSets& kept, size_t layer)
        : scores_(scores), n_rows_(kept.n_rows), n_tokens_(kept.n_tokens), is_kept_(scores.size()) {
        for (size_t row = 0; row < n_rows_; ++row) {
            for (const uint32_t token : kept.row(layer, row)) is_kept_[row * n_tokens_ + token] = 1;
            add_ranked_entries(row);
        }
    }

    /// Returns how close the layer is to keeping a lost token.
    [[nodiscard]] Lost rank(size_t layer, uint32_t token) const {
        Lost lost;
        size_t best = n_rows_;  // the row with the highest score
        for (size_t row = 0; row < n_rows_; ++row) {
            if (std::isnan(score(row, token))) continue;
            if (best == n_rows_ || score(row, token) > score(best, token)) best = row;
            const size_t entries = gap(row, token);
            if (entries < lost.gap.entries) lost.gap = {entries, layer, row};
        }
        lost.is_kept_together = best < n_rows_ && is_kept_together(best, token);
        return lost;
    }

 private:
    [[nodiscard]] T score(size_t row, uint32_t token) const { return scores_[row * n_tokens_ + token]; }

    /// Equal scores: the lower row wins, then the lower position. NaN precedes nothing.
    [[nodiscard]] bool precedes(size_t row, uint32_t token, size_t other_row, uint32_t other) const {
        const T a = score(row, token), b = score(other_row, other);
        return a > b || (a == b && std::tie(row, token) < std::tie(other_row, other));
    }

    [[nodiscard]] bool takes_part(size_t row, uint32_t token) const {
        return !is_kept_[row * n_tokens_ + token] || score(row, token) >= most_dropped_[row];
    }

    /// Returns how many entries the row lacks to keep a lost token that has a score.
    [[nodiscard]] size_t gap(size_t row, uint32_t token) const {
        size_t count = 1;
        for (uint32_t other = 0; other < n_tokens_; ++other)
            if (!is_kept_[row * n_tokens_ + other] && precedes(row, other, row, token)) ++count;
        return count;
    }

    /// Whether the layer keeps the token in this row if all rows rank their tokens together.
    [[nodiscard]] bool is_kept_together(size_t row, uint32_t token) const {
        size_t n_before = 0;
        for (size_t of = 0; of < n_rows_ && n_before < n_ranked_; ++of)
            for (uint32_t other = 0; other < n_tokens_; ++other)
                if (takes_part(of, other) && precedes(of, other, row, token)) ++n_before;
        return n_before < n_ranked_;
    }

    /// Counts the entries that the row keeps for their scores. The others are kept whatever their scores are, such as
    /// the last tokens: the row drops tokens with higher scores.
    void add_ranked_entries(size_t row) {
        T most = -std::numeric_limits<T>::infinity();
        for (uint32_t token = 0; token < n_tokens_; ++token)
            if (!is_kept_[row * n_tokens_ + token] && score(row, token) > most) most = score(row, token);
        most_dropped_.push_back(most);
        for (uint32_t token = 0; token < n_tokens_; ++token)
            if (is_kept_[row * n_tokens_ + token] && score(row, token) >= most) ++n_ranked_;
    }

    std::span<const T> scores_;  ///< (R, N)
    size_t n_rows_, n_tokens_;
    std::vector<char> is_kept_;    ///< (R, N)
    std::vector<T> most_dropped_;  ///< (R) highest score of a dropped token
    size_t n_ranked_ = 0;          ///< entries of all rows that are kept for their scores
};

template <class T>
std::vector<Lost> rank_lost(std::span<const T> scores, const KeptSets& kept, std::span<const uint32_t> tokens) {
    const size_t size = kept.n_rows * kept.n_tokens;
    std::vector<std::vector<Lost>> layers(kept.n_layers);
    kernels::parallel_for(static_cast<int64_t>(kept.n_layers), static_cast<int64_t>(scores.size() * tokens.size()),
                          [&](int64_t i) {
                              const auto layer = static_cast<size_t>(i);
                              const RankedLayer<T> ranked(scores.subspan(layer * size, size), kept, layer);
                              for (const uint32_t token : tokens) layers[layer].push_back(ranked.rank(layer, token));
                          });
    std::vector<Lost> all(tokens.size());
    for (const std::vector<Lost>& layer : layers)
        for (size_t token = 0; token < tokens.size(); ++token) {
            if (layer[token].gap.entries < all[token].gap.entries) all[token].gap = layer[token].gap;
            all[token].is_kept_together |= layer[token].is_kept_together;
        }
    return all;
}

/// Returns an empty list if the run has no scores.
std::vector<Lost> rank_lost(const WrongAnswer& answer, std::span<const uint32_t> tokens) {
    const size_t size = answer.kept.n_layers * answer.kept.n_rows * answer.kept.n_tokens;
    if (answer.run.scores.size() == size) return rank_lost<float>(answer.run.scores, answer.kept, tokens);
    if (answer.run.scores_f64.size() == size) return rank_lost<double>(answer.run.scores_f64, answer.kept, tokens);
    return {};
}

bool received_little_attention(const WrongAnswer& answer, std::span<const uint32_t> lost) {
    if (answer.most_attention.size() != answer.evidence.size()) return false;
    const auto even = static_cast<float>(1.0 / static_cast<double>(answer.kept.n_tokens));
    for (size_t i = 0; i < answer.evidence.size(); ++i)
        if (answer.most_attention[i] >= even && std::ranges::binary_search(lost, answer.evidence[i])) return false;
    return true;
}

}  // namespace

bool is_wrong_only_compressed(const trace::ResultRow& row, const trace::ResultRow& full) {
    return row.status == trace::schema::run::status_complete && row.policy != full_policy && !std::isnan(row.score) &&
           !is_right(row) && full.status == trace::schema::run::status_complete && is_right(full);
}

void raise_most_attention(std::span<const float> attention, int64_t n_heads, std::span<const uint32_t> evidence,
                          std::span<float> most) {
    const size_t n_tokens = attention.size() / static_cast<size_t>(n_heads);
    for (size_t head = 0; head < static_cast<size_t>(n_heads); ++head)
        for (size_t i = 0; i < evidence.size(); ++i)
            most[i] = std::max(most[i], attention[head * n_tokens + evidence[i]]);
}

void set_cause(trace::ResultRow& row, const WrongAnswer& answer) {
    row.cause = cause::undetermined;
    if (answer.evidence.empty()) return;
    const std::vector<uint32_t> tokens = lost_evidence(answer.kept, answer.evidence);
    if (tokens.empty()) {
        row.cause = cause::kept;
        return;
    }
    if (received_little_attention(answer, tokens)) {
        row.cause = cause::little_attention;
        return;
    }
    const std::vector<Lost> lost = rank_lost(answer, tokens);
    if (lost.empty()) return;
    if (std::ranges::all_of(lost, &Lost::is_kept_together)) {
        row.cause = cause::few_slots;
        return;
    }
    const Gap hardest = std::ranges::max(lost, {}, [](const Lost& one) { return one.gap.entries; }).gap;
    if (hardest.entries == Gap{}.entries) return;  // a lost token has no score
    row.cause = cause::ranked_low;
    row.cause_layer = static_cast<double>(hardest.layer);
    row.cause_head = static_cast<double>(hardest.row);
    row.cause_gap = static_cast<double>(hardest.entries);
}

void forget_cause(trace::ResultRow& row) {
    row.cause.clear();
    row.cause_layer = row.cause_head = row.cause_gap = trace::ResultRow::unknown;
}

}  // namespace kvscope::analysis
