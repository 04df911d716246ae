#pragma once

#include <stdexcept>

namespace kvscope::policies {

/// A policy, parameter or value that does not exist or cannot be taken: wrong usage, the message says what can.
class ParameterError : public std::invalid_argument {
 public:
    using std::invalid_argument::invalid_argument;
};

/// A budget that cannot be read, or that a policy cannot work with (not above its window).
class BudgetError : public std::invalid_argument {
 public:
    using std::invalid_argument::invalid_argument;
};

/// A score is NaN where positions have to be ranked, or scores that are to be ranked again are missing.
class ScoreError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

/// A policy's decision that no cache can follow: positions that do not exist, or not in order, rows too many or too
/// few.
class SelectionError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

}  // namespace kvscope::policies
