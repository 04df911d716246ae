#include "analysis/measures/wrong_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "trace/records/schema.h"

namespace kvscope::analysis {
namespace {

/// A token of an answer that its head does not keep.
struct Lost {
    uint32_t token = 0;
    size_t layer = 0, row = 0;
    float attention = 0;
    size_t gap = unknown_gap;  ///< entries that the row lacks to keep the token
    bool is_kept_together = false;

    static constexpr size_t unknown_gap = std::numeric_limits<size_t>::max();
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

    /// Sets how close the row and the layer are to keeping a token, if the token has a score.
    void rank(Lost& lost) const {
        if (std::isnan(score(lost.row, lost.token))) return;
        lost.gap = gap(lost.row, lost.token);
        lost.is_kept_together = is_kept_together(lost.row, lost.token);
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
void rank_all(std::span<const T> scores, const KeptSets& kept, std::span<Lost> lost) {
    const size_t size = kept.n_rows * kept.n_tokens;
    if (scores.size() != kept.n_layers * size) return;
    std::map<size_t, RankedLayer<T>> layers;
    for (Lost& one : lost) {
        const auto place = layers.try_emplace(one.layer, scores.subspan(one.layer * size, size), kept, one.layer).first;
        place->second.rank(one);
    }
}

/// Returns the tokens that their heads do not keep.
std::vector<Lost> lost_tokens(const WrongAnswer& answer) {
    std::vector<Lost> lost;
    for (size_t i = 0; i < answer.tokens.size(); ++i) {
        const AttentionPeak& peak = answer.peaks[i];
        const size_t row = peak.head * answer.kept.n_rows / answer.n_heads;
        if (!std::ranges::binary_search(answer.kept.row(peak.layer, row), answer.tokens[i]))
            lost.push_back({answer.tokens[i], peak.layer, row, peak.attention});
    }
    return lost;
}

}  // namespace

bool is_wrong_only_compressed(const trace::ResultRow& row, const trace::ResultRow& full) {
    return row.status == trace::schema::run::status_complete && row.policy != full_policy && !std::isnan(row.score) &&
           !is_right(row) && full.status == trace::schema::run::status_complete && is_right(full);
}

void raise_peaks(std::span<const float> attention, size_t layer, size_t n_heads, std::span<const uint32_t> tokens,
                 std::span<AttentionPeak> peaks) {
    const size_t n_tokens = attention.size() / n_heads;
    for (size_t head = 0; head < n_heads; ++head)
        for (size_t i = 0; i < tokens.size(); ++i) {
            const float received = attention[head * n_tokens + tokens[i]];
            if (received > peaks[i].attention) peaks[i] = {received, layer, head};
        }
}

void set_cause(trace::ResultRow& row, const WrongAnswer& answer) {
    row.cause = cause::undetermined;
    if (answer.tokens.empty() || answer.peaks.size() != answer.tokens.size()) return;
    std::vector<Lost> lost = lost_tokens(answer);
    if (lost.empty()) {
        row.cause = cause::kept;
        return;
    }
    const auto even = static_cast<float>(1.0 / static_cast<double>(answer.kept.n_tokens));
    if (std::ranges::all_of(lost, [&](const Lost& one) { return one.attention < even; })) {
        row.cause = cause::little_attention;
        return;
    }
    rank_all<float>(answer.run.scores, answer.kept, lost);
    rank_all<double>(answer.run.scores_f64, answer.kept, lost);
    if (std::ranges::all_of(lost, &Lost::is_kept_together)) {
        row.cause = cause::few_slots;
        return;
    }
    const Lost& hardest = *std::ranges::max_element(lost, {}, &Lost::gap);
    if (hardest.gap == Lost::unknown_gap) return;
    row.cause = cause::ranked_low;
    row.cause_layer = static_cast<double>(hardest.layer);
    row.cause_head = static_cast<double>(hardest.row);
    row.cause_token = hardest.token;
    row.cause_gap = static_cast<double>(hardest.gap);
}

void forget_cause(trace::ResultRow& row) {
    row.cause.clear();
    row.cause_layer = row.cause_head = row.cause_token = row.cause_gap = trace::ResultRow::unknown;
}

std::string cause_in_words(const trace::ResultRow& row) {
    if (row.cause == cause::kept)
        return "The head that attends most to each token of the answer keeps it. Other heads may have dropped it.";
    if (row.cause == cause::little_attention)
        return "Each dropped token of the answer received less than an equal share (1 / number of tokens) of the "
               "window's attention in every head.";
    if (row.cause == cause::few_slots)
        return "Single heads had too few entries. A ranking over all heads of a layer would have kept the answer.";
    if (row.cause == cause::undetermined) return "Unknown: the place of the answer or its scores are not known.";
    if (row.cause != cause::ranked_low) return row.cause;
    const std::string token = std::isnan(row.cause_token) ? "a token" : fmt::format("token {:.0f}", row.cause_token);
    return fmt::format(
        "KV head {:.0f} of layer {:.0f} dropped {} of the answer. With {:.0f} more {}, it would have kept it.",
        row.cause_head, row.cause_layer, token, row.cause_gap, row.cause_gap == 1 ? "entry" : "entries");
}

}  // namespace kvscope::analysis
