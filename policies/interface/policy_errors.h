#pragma once

#include <stdexcept>

namespace kvscope::policies {

/// A policy, parameter or value does not exist or is not allowed. The message lists the allowed ones.
class ParameterError : public std::invalid_argument {
 public:
    using std::invalid_argument::invalid_argument;
};

/// A budget cannot be read, or a policy cannot work with it, e.g. because it does not exceed the window.
class BudgetError : public std::invalid_argument {
 public:
    using std::invalid_argument::invalid_argument;
};

/// A score is NaN where positions are ranked, or recorded scores are missing.
class ScoreError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

/// A policy's decision is invalid: positions that do not exist or are not ascending, or a wrong number of rows.
class SelectionError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

}  // namespace kvscope::policies
