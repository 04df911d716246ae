#pragma once

#include <cstdint>
#include <string_view>

#include "policies/interface/policy.h"

namespace kvscope::policies {

/// Checks that the selection has one row per KV head or query head, with strictly ascending positions below n_tokens.
/// The checks here keep a faulty policy from damaging other runs.
/// @throws SelectionError that names policy, layer and row, the expected and the found value.
void require_rows(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                  const Selection& selection);

/// Checks the rows, and that scores and divergences are empty or have the right sizes. @throws SelectionError
void require_selection(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                       const Selection& selection);

/// Checks for 1 to `n_merges` ascending pairs without overlap, with finite keys. @throws SelectionError
void require_merges(std::string_view policy, const MergeObservations& observations, int64_t n_merges,
                    const Merges& merges);

/// Checks that evictions are empty, or strictly ascending entry indices for every row. @throws SelectionError
void require_evictions(std::string_view policy, const StepObservations& step, const StepEvictions& evictions);

}  // namespace kvscope::policies
