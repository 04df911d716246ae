#pragma once

#include <vector>

#include "policies/interface/snapkv_family.h"

namespace kvscope::policies {

/// Base of policies that generate some tokens from a cache compressed as SnapKV does, and then rank the full prefix by
/// those tokens' queries. The window stays protected.
class LookaheadPolicy : public SnapKvFamily {
 public:
    explicit LookaheadPolicy(const ParameterValues& values)
        : SnapKvFamily(values), lookahead_(values.integer("lookahead")) {}

    PassPlan plan(const RunContext&) const override {
        PassPlan plan;
        plan.lookahead = lookahead_;
        return plan;
    }

    Selection draft(LayerObservations& observations) override { return SnapKvFamily::select(observations); }

 private:
    int64_t lookahead_;
};

inline Parameter lookahead_parameter() {
    return integer_parameter("lookahead", 8, {.low = 1},
                             "Tokens generated from the draft, whose queries rank the full cache.");
}

}  // namespace kvscope::policies
