#pragma once

#include <cstdint>
#include <string_view>

#include "policies/api/further_interfaces.h"

namespace kvscope::policies {

/// @throws SelectionError unless there is one row per KV head or query head, with ascending positions below n_tokens
void require_valid_selection_rows(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                                  const Selection& selection);

/// Checks the rows and the sizes of scores and divergences. @throws SelectionError
void require_valid_selection(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                             const Selection& selection);

/// Checks for 1 to `n_merges` ascending pairs without overlap and for finite keys. @throws SelectionError
void require_valid_merges(std::string_view policy, const MergeObservations& observations, int64_t n_merges,
                          const Merges& merges);

/// Checks that evictions are empty or have strictly ascending entry indices for every row. @throws SelectionError
void require_valid_evictions(std::string_view policy, const StepObservations& step, const StepEvictions& evictions);

}  // namespace kvscope::policies
