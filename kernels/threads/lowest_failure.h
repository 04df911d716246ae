#pragma once

#include <cstdint>
#include <exception>
#include <mutex>

namespace kvscope::kernels {

/// Keeps the exception of the failing call with the lowest index in a parallel loop, so the result does not depend on
/// thread timing.
class LowestFailure {
 public:
    template <class Body>
    void guard(int64_t call, const Body& body) {
        try {
            body();
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (failure_ && call_ < call) return;
            failure_ = std::current_exception();
            call_ = call;
        }
    }

    /// Throws the exception of the failing call with the lowest index, if any. Call this after all calls have ended.
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

 private:
    std::mutex mutex_;
    std::exception_ptr failure_;
    int64_t call_ = 0;  ///< number of the call that threw `failure_`
};

}  // namespace kvscope::kernels
