#pragma once

#include <exception>
#include <stop_token>

namespace kvscope::trace {

/// Thrown by a read on a thread whose work is to stop. No TraceError: nothing is wrong with the trace.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "the work was stopped"; }
};

/// While it lives, what this thread reads of traces throws Interrupted once the stop is requested, so that long work
/// ends with the data set that it is reading.
class Interruptible {
 public:
    explicit Interruptible(std::stop_token token);
    ~Interruptible();
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;

 private:
    std::stop_token before_;
};

/// @throws Interrupted
void throw_if_interrupted();

}  // namespace kvscope::trace
