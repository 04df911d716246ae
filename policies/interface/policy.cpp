#include "policies/interface/policy.h"

#include <stdexcept>

namespace kvscope::policies {

std::vector<uint32_t> Policy::filter_prompt(LayerObservations&) {
    throw std::logic_error("this policy names no layer after which it filters the prompt");
}

Selection Policy::select_from_scores(int, LayerScores) {
    throw std::logic_error("this policy's decision does not follow from its scores alone");
}

}  // namespace kvscope::policies
