#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvscope::engine::helmet {

/// Returns the numbers from 0 to n - 1 in the order of `numpy.random.default_rng(seed).permutation(n)` of NumPy 1.17 to
/// 2.4, which `shuffle(seed=seed)` of the package `datasets` uses. @param n at most 2^32
[[nodiscard]] std::vector<size_t> permutation(size_t n, uint64_t seed);

}  // namespace kvscope::engine::helmet
