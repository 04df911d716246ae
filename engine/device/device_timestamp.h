#pragma once

#include <c10/core/Event.h>

#include <optional>

#include "engine/common/work_clock.h"
#include "engine/device/compute_device.h"

namespace kvscope::engine {

/// A place in the order of what a device was asked for: on a card when all of it until then is done, elsewhere now.
class DeviceTimestamp {
 public:
    explicit DeviceTimestamp(const ComputeDevice& device);
    /// Seconds from here to a later one of the same device, which has to be past (kernels::Backend::wait). Pauses of
    /// this thread's work in between do not count.
    double until(const DeviceTimestamp& later) const;

 private:
    WorkClock::time_point time_ = WorkClock::now();
    WorkClock::duration paused_ = WorkClock::paused();
    std::optional<c10::Event> event_;  ///< of a card
};

}  // namespace kvscope::engine
