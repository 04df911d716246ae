#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "analysis/measures/kept_sets.h"
#include "trace/reader.h"

namespace kvscope::analysis {

struct KeptSummary {
    int64_t n_entries = 0;      ///< number of entries in all layers and heads
    double coverage = 0;        ///< share of the N tokens that at least one head keeps
    double attention_kept = 0;  ///< mean over layers and query heads; NaN if unknown
    uint64_t bytes = 0;         ///< size of the kept entries
};

/// Returns the bytes of the keys and values of all tokens that policies see.
[[nodiscard]] double bytes_of_all_entries(const trace::Reader& reader, int prompt);

/// Summarizes a finished run of the trace.
[[nodiscard]] KeptSummary summarize_kept_entries(const trace::Reader& reader, int prompt, int run);
/// Summarizes a run that is not in the trace.
[[nodiscard]] KeptSummary summarize_kept_entries(const trace::Reader& reader, int prompt, const trace::RunRecord& run);

/// Attention of the full run's answer, read once to compute the recall of many selections.
class AnswerAttention {
 public:
    /// Returns nullopt if the trace has no answer attention.
    [[nodiscard]] static std::optional<AnswerAttention> read(const trace::Reader& reader, int prompt);

    /// Returns the mean recall over the layers (DapQ, Eq. 3), like recall_of_runs().
    [[nodiscard]] double recall(const trace::RunRecord& run, int64_t budget) const;

 private:
    size_t n_layers_ = 0;
    size_t n_kv_heads_ = 0;
    size_t n_tokens_ = 0;
    std::vector<float> values_;  ///< (L, G, N)
};

}  // namespace kvscope::analysis
