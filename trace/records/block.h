#pragma once

#include <cstddef>
#include <vector>

namespace kvscope::trace {

/// A block of a data set: first index and length in each dimension.
struct Block {
    std::vector<std::size_t> first;
    std::vector<std::size_t> count;
};

}  // namespace kvscope::trace
