#pragma once

#include <c10/core/Event.h>

#include <optional>

#include "engine/common/work_clock.h"
#include "engine/device/compute_device.h"

namespace kvscope::engine {

/// A point in time of a device's work. On a card, the time when all work requested so far is done; otherwise, the time
/// of construction.
class DeviceTimestamp {
 public:
    explicit DeviceTimestamp(const ComputeDevice& device);
    /// Returns the seconds until a later timestamp of the same device, without pauses of this thread's work. The device
    /// must have passed both (kernels::Backend::wait).
    double until(const DeviceTimestamp& later) const;

 private:
    WorkClock::time_point time_ = WorkClock::now();
    WorkClock::duration paused_ = WorkClock::paused();
    std::optional<c10::Event> event_;  ///< for a card
};

}  // namespace kvscope::engine
