#pragma once

#include <stdexcept>

namespace kvscope::policies {

/// An unknown policy, parameter or value. The message lists the allowed ones.
class ParameterError : public std::invalid_argument {
 public:
    using std::invalid_argument::invalid_argument;
};

/// A budget that cannot be read, or that a policy cannot use, such as a budget that does not exceed the window.
class BudgetError : public std::invalid_argument {
 public:
    using std::invalid_argument::invalid_argument;
};

/// Recorded scores are missing, or a score is NaN where entries are ranked.
class ScoreError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

/// An invalid decision of a policy, such as descending positions or a wrong number of rows.
class SelectionError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

}  // namespace kvscope::policies
