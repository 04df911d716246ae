#pragma once

#include <functional>

namespace kvscope::checkpoint {

/// While this object exists, slow work on this thread calls a function every 0.1 s, which can throw to end the work.
class StopCheck {
 public:
    explicit StopCheck(std::function<void()> check);
    ~StopCheck();
    StopCheck(const StopCheck&) = delete;
    StopCheck& operator=(const StopCheck&) = delete;

    /// Calls the functions of this thread's StopChecks, innermost first.
    static void now();

 private:
    std::function<void()> check_;
    StopCheck* outer_;
};

}  // namespace kvscope::checkpoint
