#include "policies/registry/decidable_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace kvscope::policies {

std::pair<int, int> DecidableLayers::after(const CreatedPolicy& policy, int layer, int n_layers) {
    if (layer != static_cast<int>(decided_at_.size()))
        throw std::logic_error(
            fmt::format("layers are observed in ascending order: expected {}, found {}", decided_at_.size(), layer));
    const auto* in_order = policy.as<DecidesInOrder>();
    const int at = in_order ? in_order->decided_at(layer) : layer,
              least = std::max(layer, decided_at_.empty() ? 0 : decided_at_.back());
    if (at < least || at >= n_layers)
        throw std::logic_error(
            fmt::format("layer {} cannot be decided at layer {}: expected {} to {}", layer, at, least, n_layers - 1));
    decided_at_.push_back(at);
    const int first = next_;
    while (next_ <= layer && decided_at_[static_cast<size_t>(next_)] <= layer) ++next_;
    return {first, next_};
}

}  // namespace kvscope::policies
