#pragma once

#include <stdexcept>

namespace kvscope::engine {

/// The user requested something impossible (exit code 2).
struct UsageError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// The requested work failed (exit code 1).
struct RunError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace kvscope::engine
