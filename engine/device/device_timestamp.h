#pragma once

#include <c10/core/Event.h>

#include <optional>

#include "engine/common/work_clock.h"
#include "engine/device/compute_device.h"

namespace kvscope::engine {

/// Time at which a card finishes the work requested so far; without a card, the time of construction.
class DeviceTimestamp {
 public:
    explicit DeviceTimestamp(const ComputeDevice& device);
    /// Returns the seconds until `later`, without pauses of this thread's work. The time `later` must have passed.
    [[nodiscard]] double until(const DeviceTimestamp& later) const;

 private:
    WorkClock::time_point time_ = WorkClock::now();
    WorkClock::duration paused_ = WorkClock::paused();
    std::optional<c10::Event> event_;  ///< set only on a card
};

}  // namespace kvscope::engine
