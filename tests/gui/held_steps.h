#pragma once

#include <condition_variable>
#include <limits>
#include <mutex>

namespace kvscope::gui::testing {

/// Where the engine waits before a step of the answer, until it may go on. Steps are counted from 0.
class HeldSteps {
 public:
    /// The engine's thread, before each step.
    void before_step() {
        std::unique_lock lock(mutex_);
        ++n_begun_;
        changed_.wait(lock, [this] { return n_begun_ <= allowed_; });
    }
    /// Lets n steps begin, in all.
    void allow(int n) {
        const std::lock_guard lock(mutex_);
        allowed_ = n;
        changed_.notify_all();
    }
    void allow_all() { allow(std::numeric_limits<int>::max()); }
    /// Whether the engine waits with n steps done.
    bool waits_behind(int n) {
        const std::lock_guard lock(mutex_);
        return n_begun_ == n + 1 && allowed_ == n;
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int n_begun_ = 0;
    int allowed_ = 0;
};

/// The engine goes on when the test ends, however it does: the window waits for it when it closes.
struct AllowedAtTheEnd {
    HeldSteps& steps;
    ~AllowedAtTheEnd() { steps.allow_all(); }
};

}  // namespace kvscope::gui::testing
