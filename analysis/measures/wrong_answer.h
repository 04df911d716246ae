#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "analysis/measures/kept_sets.h"
#include "trace/records/records.h"

namespace kvscope::analysis {

/// Whether an answer counts as right. Scores such as F1 are between right and wrong.
[[nodiscard]] inline bool is_right(const trace::ResultRow& row) { return row.score >= 0.5; }

/// Whether a complete run answers wrongly although the full run answers rightly.
[[nodiscard]] bool is_wrong_only_compressed(const trace::ResultRow& row, const trace::ResultRow& full);

/// Causes of a wrong answer, in the order in which they are tested. A token's *head* is the query head, of all layers,
/// whose window queries attend most to the token. A token of an answer is lost if the head's KV head drops it.
namespace cause {
/// No token of an answer is lost, so the reason is unknown.
inline constexpr std::string_view kept = "kept";
/// Each lost token received less than 1 / N of the window's attention in every head (N tokens).
inline constexpr std::string_view little_attention = "little attention";
/// If the layers of the lost tokens kept their entries with the highest scores of all heads, no token would be lost.
inline constexpr std::string_view few_slots = "few slots";
/// The head of a lost token ranks it below the cut-off.
inline constexpr std::string_view ranked_low = "ranked low";
/// The context contains no answer, or a lost token has no score.
inline constexpr std::string_view undetermined = "undetermined";

inline constexpr std::array all = {little_attention, few_slots, ranked_low, kept, undetermined};
}  // namespace cause

/// The highest window attention of a token, and the query head that gives it. Of equal heads, the first one counts.
struct AttentionPeak {
    float attention = 0;
    std::size_t layer = 0, head = 0;

    [[nodiscard]] bool operator==(const AttentionPeak&) const = default;
};

/// What is known about a run with a wrong answer: L layers, R rows, H query heads, N tokens.
struct WrongAnswer {
    const trace::RunRecord& run;  ///< with `scores` or `scores_f64` (L, R, N), if the policy has scores
    const KeptSets& kept;
    std::span<const uint32_t> tokens;        ///< of the context's answers, ascending
    std::span<const AttentionPeak> peaks{};  ///< one per token; empty if unknown
    std::size_t n_heads = 1;
};

/// Raises the peaks of tokens by the attention (H, N) of one layer's window.
void raise_peaks(std::span<const float> attention, std::size_t layer, std::size_t n_heads,
                 std::span<const uint32_t> tokens, std::span<AttentionPeak> peaks);

/// Sets `cause` of the row. For the cause "ranked low", also sets the lost token that is hardest to keep, its head, and
/// how many entries this head lacks.
void set_cause(trace::ResultRow& row, const WrongAnswer& answer);

void forget_cause(trace::ResultRow& row);

/// Returns a sentence on the row's cause; empty if the row has none.
[[nodiscard]] std::string cause_in_words(const trace::ResultRow& row);

}  // namespace kvscope::analysis
