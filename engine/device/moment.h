#pragma once

#include <c10/core/Event.h>

#include <chrono>
#include <optional>

#include "engine/device/compute_device.h"

namespace kvscope::engine {

/// A place in the order of what a device was asked for: on a card when all of it until then is done, elsewhere now.
class Moment {
 public:
    explicit Moment(const ComputeDevice& device);
    /// Seconds from here to a later one of the same device, which has to be past (kernels::Backend::wait).
    double until(const Moment& later) const;

 private:
    std::chrono::steady_clock::time_point time_ = std::chrono::steady_clock::now();
    std::optional<c10::Event> event_;  ///< of a card
};

}  // namespace kvscope::engine
