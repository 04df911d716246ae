#pragma once

#include <cstdint>
#include <exception>
#include <mutex>

namespace kvscope::kernels {

/// Of what the calls of a parallel loop throw, that of the lowest: the same whatever thread came first.
class LowestFailure {
 public:
    /// Calls body(), from any thread, and keeps what it throws.
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

    /// @throws what the lowest call threw, if any did; to be called once all have ended
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

 private:
    std::mutex mutex_;
    std::exception_ptr failure_;
    int64_t call_ = 0;  ///< whose that is
};

}  // namespace kvscope::kernels
