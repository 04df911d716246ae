#pragma once

#include <chrono>

namespace kvscope::engine {

/// A steady clock that stands still for a thread while that thread's work is paused. Everything that measures work uses
/// this clock: a pause is no part of a prefill's or a decode step's time.
class WorkClock {
 public:
    using duration = std::chrono::steady_clock::duration;
    using time_point = std::chrono::steady_clock::time_point;

    static time_point now() { return std::chrono::steady_clock::now() - paused(); }
    static double seconds_since(time_point start) { return std::chrono::duration<double>(now() - start).count(); }

    /// The sum of this thread's pauses.
    static duration& paused() {
        thread_local duration sum{};
        return sum;
    }
};

/// This thread's work is paused while one exists.
class WorkPause {
 public:
    WorkPause() = default;
    ~WorkPause() { WorkClock::paused() += std::chrono::steady_clock::now() - start_; }
    WorkPause(const WorkPause&) = delete;
    WorkPause& operator=(const WorkPause&) = delete;

 private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace kvscope::engine
