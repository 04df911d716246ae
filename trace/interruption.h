#pragma once

#include <exception>
#include <stop_token>

namespace kvscope::trace {

/// Thrown by a read on a thread whose work was asked to stop. Not a TraceError, because the trace is sound.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "the work was stopped"; }
};

/// During this object's lifetime, reads of traces on its thread throw Interrupted after a stop request. Long work thus
/// ends after the current data set.
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
