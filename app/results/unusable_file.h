#pragma once

#include <stdexcept>

namespace kvscope::results {

/// A file of another program that cannot be read, or from which nothing can be used.
struct UnusableFile : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace kvscope::results
