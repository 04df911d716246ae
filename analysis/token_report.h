#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// What one row (head) of one layer did with a token. Candidates are the positions that were ranked: those with a
/// score, but the ones that the policy's `recent` keeps in any case. Ranks follow the policies' rule: of equal scores
/// the lower position is better.
struct TokenDecision {
    static constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

    bool kept = false;  ///< the cache holds something of it, be it in an entry with others
    bool candidate = false;
    double score = nothing;  ///< also of a position that is no candidate, where it has one
    size_t rank = 0;         ///< among the candidates, 1 the best; 0 for no candidate
    size_t n_candidates = 0;
    size_t n_candidates_kept = 0;
    double cut_off = nothing;  ///< the lowest score of a kept candidate
    trace::TokenFate fate;     ///< how it is kept, if it is

    /// What the row holds of the token, in entries: 1/n in an entry of n.
    double entries() const { return kept ? 1.0 / fate.n_tokens : 0.0; }
    bool forced() const { return kept && !candidate; }   ///< window, sinks, recent: kept whatever the score
    double distance() const { return score - cut_off; }  ///< negative: below the cut-off
};

/// "kept", "dropped", "merged into an entry of 3 that ends at token 17 (this head's keys are off by 12 %, its values by
/// 3 %)", "kept in part and rebuilt (…)".
std::string fate_text(const trace::TokenFate& fate);

/// The heads of a layer that keep a token, and below, a line each, what they hold of it unless all of it: "kept by 3 of
/// 3 heads (0, 1, 2)" and "merged into an entry of 12 that ends at token 17 in 3 heads: 0.25 entries in all".
std::string fate_in_layer(const trace::Kept& kept, size_t layer, uint32_t token);

/// "Why was this token dropped?": the decisions of all layers and rows about one token of one run.
struct TokenReport {
    int64_t token = 0;
    size_t n_layers = 0;
    size_t n_rows = 0;
    bool query_heads = false;  ///< what a row is: a query head, or a KV head
    bool has_scores = false;
    std::vector<TokenDecision> decisions;  ///< (L, R)

    const TokenDecision& at(size_t layer, size_t row) const { return decisions.at(layer * n_rows + row); }
    size_t n_kept() const;

    /// One decision in a sentence: "dropped in layer 12, KV head 1: score 0.0031 is rank 131 of 2,005; 120 of them are
    /// kept, the cut-off is 0.0033". Scores have as many digits as tell them apart.
    std::string sentence(size_t layer, size_t row) const;
};

/// @throws FigureError when the trace has no such prompt, NothingToShow for a failed run, std::out_of_range for a token
///         that policies do not see, and what the reader throws.
TokenReport token_report(const trace::Reader& reader, int prompt, int run, int64_t token);

/// The candidates next to a row's cut-off: who won, who lost, by how little.
struct Border {
    struct Entry {
        uint32_t token = 0;
        double score = 0;
        size_t rank = 0;  ///< 1 the best
    };
    std::vector<Entry> kept;     ///< the lowest kept candidates, best first
    std::vector<Entry> dropped;  ///< the best dropped candidates, best first
};

/// At most k entries on either side; none where the run has no scores.
/// @throws as token_report; std::out_of_range for a layer or row that is not there.
Border border(const trace::Reader& reader, int prompt, int run, size_t layer, size_t row, size_t k);

/// Whether a run kept the tokens first ... last (both included), and where.
struct SpanReport {
    int run = 0;
    size_t n_places = 0;                     ///< layers times rows
    size_t n_keeping_all = 0;                ///< of them keep every token of the span
    size_t n_keeping_any = 0;                ///< keep at least one
    double n_entries = 0;                    ///< what they hold of it in entries, a token in an entry of n as 1/n
    size_t n_merging = 0;                    ///< of these, have a token of the span in an entry with other tokens
    size_t n_rebuilding = 0;                 ///< of these, have one whose key or value is not stored whole
    size_t n_tokens_kept = 0;                ///< tokens of the span that at least one row of any layer keeps
    size_t n_tokens = 0;                     ///< of the span
    std::vector<size_t> layers_keeping_all;  ///< in which a row keeps every token
    /// The row that keeps the most of it, the first of several.
    struct Most {
        size_t layer = 0;
        size_t row = 0;
        size_t n_tokens = 0;
    } most;
    std::string sentence;  ///< one line that says all this, with the run's label and where
};

/// One element for each finished run of the prompt, in the trace's order.
/// @throws FigureError when the trace has no such prompt, std::out_of_range unless 0 <= first <= last < N.
std::vector<SpanReport> span_report(const trace::Reader& reader, int prompt, int64_t first, int64_t last);

}  // namespace kvscope::analysis
