#pragma once

#include <exception>
#include <stop_token>

namespace kvscope::trace {

/// Thrown by a read after a stop request for the thread's work. Not a TraceError, because the trace is sound.
struct Interrupted : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return "the work was stopped"; }
};

/// While this object exists, reads of traces on the same thread throw Interrupted after a stop request.
class Interruptible {
 public:
    explicit Interruptible(std::stop_token token);
    ~Interruptible();
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;

 private:
    std::stop_token before_;
};

void throw_if_interrupted();

}  // namespace kvscope::trace
