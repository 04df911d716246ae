#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "analysis/measures/kept_sets.h"
#include "trace/records/records.h"

namespace kvscope::analysis {

/// Whether an answer counts as right. Scores such as F1 are between right and wrong.
[[nodiscard]] inline bool is_right(const trace::ResultRow& row) { return row.score >= 0.5; }

/// Whether a complete run answers wrongly although the full run answers rightly.
[[nodiscard]] bool is_wrong_only_compressed(const trace::ResultRow& row, const trace::ResultRow& full);

/// Causes of a wrong answer, in the order in which they are tested.
namespace cause {
/// Some head keeps each evidence token, so the reason is unknown.
inline constexpr std::string_view kept = "kept";
/// Each lost token received less than 1 / N of the window's attention in every head.
inline constexpr std::string_view little_attention = "little attention";
/// If each layer kept its entries with the highest scores of all heads, no token would be lost.
inline constexpr std::string_view few_slots = "few slots";
/// Every head ranks the lost tokens below its cut-off.
inline constexpr std::string_view ranked_low = "ranked low";
/// No evidence is known, or a lost token has no score.
inline constexpr std::string_view undetermined = "undetermined";

inline constexpr std::array all = {little_attention, few_slots, ranked_low, kept, undetermined};
}  // namespace cause

/// What is known about a run with a wrong answer: L layers, R rows, H heads, N tokens.
struct WrongAnswer {
    const trace::RunRecord& run;  ///< with `scores` or `scores_f64` (L, R, N), if the policy has scores
    const KeptSets& kept;
    std::span<const uint32_t> evidence;  ///< see evidence_shares()
    /// Highest window attention of each evidence token in any head of any layer; empty if unknown.
    std::span<const float> most_attention;
};

/// Raises the highest attention of each evidence token. @param attention (H, N) of one layer
void raise_most_attention(std::span<const float> attention, int64_t n_heads, std::span<const uint32_t> evidence,
                          std::span<float> most);

/// Sets `cause` of the row. For the cause "ranked low", also sets the place of the head that almost keeps the token
/// that is hardest to keep, and how many entries this head lacks.
void set_cause(trace::ResultRow& row, const WrongAnswer& answer);

void forget_cause(trace::ResultRow& row);

}  // namespace kvscope::analysis
