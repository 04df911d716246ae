#pragma once

#include <stdexcept>

namespace kvscope::engine {

/// The caller asked for something that cannot be (exit code 2 on the command line).
class UsageError : public std::invalid_argument {
 public:
    using std::invalid_argument::invalid_argument;
};

/// Something that was possible went wrong (exit code 1).
class RunError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

/// The person stopped the work; what was finished stays on disk.
class Cancelled : public std::runtime_error {
 public:
    Cancelled() : std::runtime_error("cancelled") {}
};

}  // namespace kvscope::engine
