#pragma once

#include <functional>

namespace kvscope::checkpoint {

/// While it lives, what may take long on this thread with a model's files, rendering a chat template or tokenizing,
/// calls a function some ten times a second. Where that throws, the work ends with its exception: so a person's wish to
/// stop reaches work that a model's files make long.
class StopCheck {
 public:
    explicit StopCheck(std::function<void()> check);
    ~StopCheck();
    StopCheck(const StopCheck&) = delete;
    StopCheck& operator=(const StopCheck&) = delete;

    /// Calls this thread's functions, the innermost first.
    static void now();

 private:
    std::function<void()> check_;
    StopCheck* outer_;
};

}  // namespace kvscope::checkpoint
