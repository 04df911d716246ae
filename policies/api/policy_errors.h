#pragma once

#include <stdexcept>

namespace kvscope::policies {

/// An unknown policy, parameter or value. The message lists the allowed ones.
struct ParameterError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// A budget that cannot be read, or that a policy cannot use, such as a budget that does not exceed the window.
struct BudgetError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// Recorded scores are missing, or a score is NaN where entries are ranked.
struct ScoreError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// An invalid decision of a policy, such as descending positions or a wrong number of rows.
struct SelectionError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace kvscope::policies
