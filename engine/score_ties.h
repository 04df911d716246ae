#pragma once

#include <cstdint>

#include "policies/api/policy.h"

namespace kvscope::engine {

/// Rows of one or more layers whose entries a policy ranked by scores.
struct RankedRows {
    int64_t n = 0;
    /// Rows in which a kept position has the score of the best dropped position, so that the order of positions
    /// decides which one is kept. The scores NaN and -infinity do not count.
    int64_t n_tied = 0;
};

/// Adds a layer's rows, unless the policy has no scores or stores entries in another form.
void add_ranked_rows(RankedRows& rows, const policies::Selection& selection, int64_t n_tokens);

}  // namespace kvscope::engine
