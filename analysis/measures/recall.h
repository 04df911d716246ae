#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// Kept share of the tokens to which the full run's answer attends most. A run's recall is the mean over the layers.
struct Recall {
    std::vector<double> heads;   ///< recall of each row (L, R)
    std::vector<double> layers;  ///< mean over the layer's rows (L)
};

/// Returns, for each KV head, the B positions with the most attention (G, B), ascending: M_gold in Eq. 1 of DapQ.
/// @param answer_attention (G, N) of one layer
/// @throws std::invalid_argument if G does not divide the number of values; kernels::NanScore for NaN values
[[nodiscard]] std::vector<uint32_t> most_attended_positions(std::span<const float> answer_attention, size_t n_kv_heads,
                                                            size_t budget);

/// Returns |M_gold ∩ kept| / |M_gold| for each row of a layer (DapQ, Eq. 3); NaN if M_gold is empty. Query heads are
/// compared with the M_gold of their KV head.
/// @throws std::invalid_argument if the sizes do not match
[[nodiscard]] std::vector<double> layer_recall(std::span<const uint32_t> gold, size_t n_kv_heads, const KeptSets& kept,
                                               size_t layer);

/// Returns a run's recall. @param answer_attention (L, G, N) @throws as the functions above
[[nodiscard]] Recall recall_of_run(std::span<const float> answer_attention, size_t n_kv_heads, const KeptSets& kept,
                                   size_t budget);

/// Returns the full run if it records `answer_attention`; otherwise nullopt.
[[nodiscard]] std::optional<int> full_run_with_answer_attention(const trace::Reader& reader, int prompt);

/// Whether the recall of a run of the prompt is recorded, or can be computed from `answer_attention`.
[[nodiscard]] bool has_recall(const trace::Reader& reader, int prompt);

/// Returns each run's recall at its own budget; a run without recorded recall has no heads, and NaN for each layer.
/// @param runs finished runs of a prompt with has_recall()
/// @param kept entries of each run
[[nodiscard]] std::vector<Recall> recall_of_runs(const trace::Reader& reader, int prompt, std::span<const int> runs,
                                                 std::span<const std::shared_ptr<const trace::Kept>> kept);

}  // namespace kvscope::analysis
