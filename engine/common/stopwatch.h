#pragma once

#include "engine/common/work_clock.h"

namespace kvscope::engine {

/// Measures the time of one thread's work, without pauses.
class Stopwatch {
 public:
    [[nodiscard]] double seconds() const { return WorkClock::seconds_since(start_); }

 private:
    WorkClock::time_point start_ = WorkClock::now();
};

}  // namespace kvscope::engine
