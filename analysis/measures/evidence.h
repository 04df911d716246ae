#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"

namespace kvscope::analysis {

/// How much of the evidence a run keeps: the context's tokens that contain an answer. NaN without evidence.
struct EvidenceShares {
    double kept = std::numeric_limits<double>::quiet_NaN();  ///< kept share, mean over layers and rows
    double gone = std::numeric_limits<double>::quiet_NaN();  ///< share of the tokens that no row keeps
};

/// @param evidence tokens, ascending, below N. A token in a merged entry is kept.
[[nodiscard]] EvidenceShares evidence_shares(const KeptSets& kept, std::span<const uint32_t> evidence);

/// Returns the dropped share of the first `n_system` tokens minus that of the other tokens, mean over layers and rows;
/// NaN if there are no such tokens. A token in a merged entry is kept.
[[nodiscard]] double system_dropped(const KeptSets& kept, std::int64_t n_system);

}  // namespace kvscope::analysis
