#pragma once

#include <cstdint>
#include <string_view>

#include "policies/interface/policy.h"

namespace kvscope::policies {

/// What a policy decided has to hold together before anything is copied or moved by it: a faulty policy is an error of
/// its run, and nothing is read beyond an array.

/// As many rows as the granularity has, in each of them positions that rise strictly and are below n_tokens.
/// @param policy what the policy is called in the message
/// @throws SelectionError that names policy, layer, row, what was expected and what was found.
void require_rows(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                  const Selection& selection);

/// The rows, and scores and divergences of the shapes that `Selection` gives them, or none.
/// @throws SelectionError as above.
void require_selection(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                       const Selection& selection);

/// At least one merge and at most `n_merges`, of pairs of the observed entries that rise and do not overlap, with as
/// many numbers of keys as the shape says, all finite.
/// @throws SelectionError as above.
void require_merges(std::string_view policy, const MergeObservations& observations, int64_t n_merges,
                    const Merges& merges);

/// Nothing, or for every row of the step indices of its entries that rise strictly.
/// @throws SelectionError as above.
void require_evictions(std::string_view policy, const StepObservations& step, const StepEvictions& evictions);

}  // namespace kvscope::policies
