#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace kvscope::analysis {

/// Uniform random indices. The distributions of the standard library differ between its implementations; these
/// numbers are equal on every machine.
class RandomIndex {
 public:
    explicit RandomIndex(std::uint64_t seed) : random_(seed) {}

    /// Returns an index from 0 to n - 1, for n < 2^32. The bias is below n / 2^32.
    [[nodiscard]] std::size_t below(std::size_t n) { return ((random_() >> 32) * n) >> 32; }
    [[nodiscard]] bool coin() { return (random_() >> 63) != 0; }

 private:
    std::mt19937_64 random_;
};

}  // namespace kvscope::analysis
