#include "engine/device/device_timestamp.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace kvscope::engine {

DeviceTimestamp::DeviceTimestamp(const ComputeDevice& device) {
    if (!device.place.is_cuda()) return;
    event_.emplace(device.place.type(), c10::EventFlag::BACKEND_DEFAULT);  // records its time
    event_->record(c10::impl::VirtualGuardImpl(device.place.type()).getStream(device.place));
}

double DeviceTimestamp::until(const DeviceTimestamp& later) const {
    using Seconds = std::chrono::duration<double>;
    if (!event_) return Seconds(later.time_ - time_).count();
    return event_->elapsedTime(*later.event_) / 1000 - Seconds(later.paused_ - paused_).count();
}

}  // namespace kvscope::engine
