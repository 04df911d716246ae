#pragma once

#include <functional>

namespace kvscope::checkpoint {

/// While this object exists, slow work on this thread calls a function about ten times per second. The function can
/// throw to end the work, e.g. when the user cancels.
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
