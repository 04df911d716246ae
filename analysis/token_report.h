#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Decision about a token in one row (head) of one layer. Candidates are all positions with a score, except the entries
/// that the policy keeps as `recent`. If two positions have equal scores, the lower position ranks better.
struct TokenDecision {
    static constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

    bool kept = false;  ///< The cache holds the token, alone or in a merged entry.
    bool candidate = false;
    double score = nothing;  ///< also set for a position that is not a candidate but has a score
    size_t rank = 0;         ///< rank among the candidates: 1 is best, 0 means not a candidate
    size_t n_candidates = 0;
    size_t n_candidates_kept = 0;
    double cut_off = nothing;  ///< lowest score of a kept candidate
    trace::TokenFate fate;     ///< how the token is stored, if kept

    /// Returns the number of entries that the token takes: 1/n in an entry of n tokens, 0 if dropped.
    [[nodiscard]] double entries() const { return kept ? 1.0 / fate.n_tokens : 0.0; }
    [[nodiscard]] bool forced() const {
        return kept && !candidate;
    }  ///< kept regardless of the score: window, sinks, recent
    [[nodiscard]] double distance() const { return score - cut_off; }  ///< negative if below the cut-off
};

/// Returns "kept", "dropped", "merged into an entry of 3 that ends at token 17 (relative error of this
/// head: 12 % of the keys, 3 % of the values)", or "kept in part and rebuilt (…)".
[[nodiscard]] std::string fate_text(const trace::TokenFate& fate);

/// Describes how a layer keeps a token, one line per form: "kept by 3 of 3 heads (0, 1, 2)", "merged into …".
[[nodiscard]] std::string describe_fate_in_layer(const trace::Kept& kept, size_t layer, uint32_t token);

/// The decisions of all layers and rows of a run about one token.
struct TokenReport {
    int64_t token = 0;
    size_t n_layers = 0;
    size_t n_rows = 0;
    bool query_heads = false;  ///< Rows are query heads instead of KV heads.
    bool has_scores = false;
    std::vector<TokenDecision> decisions;  ///< one per layer and row (L, R)

    [[nodiscard]] const TokenDecision& at(size_t layer, size_t row) const { return decisions.at(layer * n_rows + row); }
    [[nodiscard]] size_t n_kept() const;

    /// Describes one decision: "dropped in layer 12, KV head 1: score 0.0031 is rank 131 of 2,005; 120 of them are
    /// kept, the cut-off is 0.0033". Different scores have enough digits to look different.
    [[nodiscard]] std::string sentence(size_t layer, size_t row) const;
};

/// @throws NothingToShow for a failed run, std::out_of_range for a token that policies do not see, FigureError for an
///         unknown prompt
[[nodiscard]] TokenReport token_report(const trace::Reader& reader, int prompt, int run, int64_t token);

/// Candidates with scores close to a row's cut-off.
struct Border {
    struct Entry {
        uint32_t token = 0;
        double score = 0;
        size_t rank = 0;  ///< among the candidates, 1 is best
    };
    std::vector<Entry> kept;     ///< the lowest-ranked kept candidates, best first
    std::vector<Entry> dropped;  ///< the highest-ranked dropped candidates, best first
};

/// Returns at most k kept and k dropped candidates; none if the run has no scores. @throws as token_report()
[[nodiscard]] Border find_tokens_near_cut_off(const trace::Reader& reader, int prompt, int run, size_t layer,
                                              size_t row, size_t k);

struct SpanReport {
    int run = 0;
    size_t n_places = 0;       ///< number of rows in all layers, called places here
    size_t n_keeping_all = 0;  ///< places that keep all tokens of the span
    size_t n_keeping_any = 0;  ///< places that keep at least one token
    double n_entries = 0;      ///< entries of the span in all places; each of n tokens in an entry counts as 1/n
    size_t n_merging = 0;      ///< places that hold a token of the span in a merged entry
    size_t n_rebuilding = 0;   ///< places that hold a token whose key or value is not stored whole
    size_t n_tokens_kept = 0;  ///< tokens of the span that at least one place keeps
    size_t n_tokens = 0;       ///< length of the span
    std::vector<size_t> layers_keeping_all;  ///< layers with a row that keeps all tokens
    /// The first row that keeps the largest number of tokens.
    struct Most {
        size_t layer = 0;
        size_t row = 0;
        size_t n_tokens = 0;
    } most;
    std::string sentence;  ///< one line with all numbers, the run's label and the places
};

/// Returns one report per finished run of the prompt. @throws std::out_of_range unless 0 <= first <= last < N
[[nodiscard]] std::vector<SpanReport> span_report(const trace::Reader& reader, int prompt, int64_t first, int64_t last);

}  // namespace kvscope::analysis
