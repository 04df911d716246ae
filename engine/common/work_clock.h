#pragma once

#include <chrono>

namespace kvscope::engine {

/// A steady clock of one thread. The clock stops while the thread's work is paused.
class WorkClock {
 public:
    using duration = std::chrono::steady_clock::duration;
    using time_point = std::chrono::steady_clock::time_point;

    [[nodiscard]] static time_point now() { return std::chrono::steady_clock::now() - paused(); }
    [[nodiscard]] static double seconds_since(time_point start) {
        return std::chrono::duration<double>(now() - start).count();
    }

    [[nodiscard]] static duration& paused() {
        thread_local duration sum{};
        return sum;
    }
};

/// Stops this thread's WorkClock while the object exists.
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
