#pragma once

#include "engine/common/work_clock.h"

namespace kvscope::engine {

/// Measures the time of work on one thread, without its pauses.
class Stopwatch {
 public:
    double seconds() const { return WorkClock::seconds_since(start_); }

 private:
    WorkClock::time_point start_ = WorkClock::now();
};

}  // namespace kvscope::engine
