#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Share of what the full cache's answer attends to most that a run kept.
struct Recall {
    std::vector<double> heads;   ///< (L, R) of each row
    std::vector<double> layers;  ///< (L) mean over the layer's rows
    double model = 0;            ///< mean over the layers
};

/// (G, B): of each KV head's attention (G, N) in one layer the positions of the best B, ascending, ties to the lower
/// one: M_gold of DapQ, Eq. 1. All N where the prompt is no longer than B.
/// @throws std::invalid_argument when G does not divide the number of values; kernels::NanScore.
std::vector<uint32_t> gold_sets(std::span<const float> answer_attention, size_t n_kv_heads, size_t budget);

/// |M_gold ∩ kept| / |M_gold| (DapQ, Eq. 3) of each of the layer's rows (R). Where K and V are repeated to query heads,
/// each of a KV head's rows is held against that head's M_gold by itself: their union would count H / G budgets.
/// Merged entries count as their last token. An empty M_gold gives NaN.
/// @param gold as gold_sets gives it
/// @throws std::invalid_argument when R is no multiple of G, or G does not divide the number of positions
std::vector<double> layer_recall(std::span<const uint32_t> gold, size_t n_kv_heads, const KeptSets& kept, size_t layer);

/// The full run whose `answer_attention` the prompt's runs are held against; nullopt where the trace has none.
std::optional<int> run_with_answer_attention(const trace::Reader& reader, int prompt);

/// Each run's recall at its own budget. The attention is read layer by layer, and ranked once for runs of one budget.
/// @param runs finished ones of a prompt that has `answer_attention`
std::vector<Recall> recall_of_runs(const trace::Reader& reader, int prompt, std::span<const int> runs);

}  // namespace kvscope::analysis
