#pragma once

#include <exception>
#include <stop_token>

namespace kvscope::trace {

/// Thrown by a read on a thread whose work was asked to stop. Not a TraceError, because the trace is sound.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "the work was stopped"; }
};

/// Makes reads of traces on this thread throw Interrupted after a stop request, so long work ends after the current
/// data set. Effective for the object's lifetime.
class Interruptible {
 public:
    explicit Interruptible(std::stop_token token);
    ~Interruptible();
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;

 private:
    std::stop_token before_;
};

/// Throws Interrupted if a stop was requested for this thread's work.
void throw_if_interrupted();

}  // namespace kvscope::trace
