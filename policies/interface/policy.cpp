#include "policies/interface/policy.h"

#include <stdexcept>

namespace kvscope::policies {

Selection Policy::draft(LayerObservations&) { throw std::logic_error("this policy does not look ahead"); }

Selection Policy::select_from_scores(int, LayerScores) {
    throw std::logic_error("this policy's decision does not follow from its scores alone");
}

}  // namespace kvscope::policies
