#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "analysis/measures/kept_sets.h"
#include "trace/reader.h"

namespace kvscope::analysis {

/// What a run keeps, in a few numbers.
struct KeptSummary {
    int64_t n_entries = 0;      ///< kept, over layers and heads
    double entries_share = 0;   ///< of all there are
    int64_t n_covered = 0;      ///< prompt tokens that at least one head keeps
    double coverage = 0;        ///< the same as a share of N
    double attention_kept = 0;  ///< mean over layers and query heads; NaN where the trace does not tell
    uint64_t bytes = 0;         ///< that the kept entries need
};

/// What keys and values of all tokens that policies see take.
double bytes_of_all_entries(const trace::Reader& reader, int prompt);

/// Of a finished run of the trace. @throws what the reader throws
KeptSummary summarize(const trace::Reader& reader, int prompt, int run);
/// Of one that is not in the trace.
KeptSummary summarize(const trace::Reader& reader, int prompt, const trace::RunRecord& run);

/// What the full cache's answer attends to, read once, so that the recall of many selections can be measured.
class AnswerAttention {
 public:
    /// nullopt where the trace does not have it. @throws what the reader throws
    static std::optional<AnswerAttention> read(const trace::Reader& reader, int prompt);

    /// Mean over the layers of the share that each row keeps of the `budget` best tokens of its head (DapQ, Eq. 3), as
    /// recall_of_runs has it.
    double recall(const trace::RunRecord& run, int64_t budget) const;

 private:
    size_t n_kv_heads_ = 0;
    size_t n_tokens_ = 0;
    std::vector<std::vector<float>> layers_;  ///< (L) of (G, N)
};

}  // namespace kvscope::analysis
