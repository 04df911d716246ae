#pragma once

#include <stdexcept>

namespace kvscope::engine {

/// The user requested something impossible (exit code 2).
class UsageError : public std::invalid_argument {
 public:
    using std::invalid_argument::invalid_argument;
};

/// The requested work failed (exit code 1).
class RunError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

}  // namespace kvscope::engine
