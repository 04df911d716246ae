#pragma once

#include <bit>
#include <cstdint>
#include <random>

namespace kvscope::engine::ruler {

/// The numbers of NumPy's legacy generator, `numpy.random.RandomState(seed)`.
class NumpyRandom {
 public:
    explicit NumpyRandom(uint32_t seed) : engine_(seed) {}

    /// Returns `randint(low, high)`, an integer from `low` to `high` - 1.
    [[nodiscard]] int64_t randint(int64_t low, int64_t high) {
        const auto largest = static_cast<uint32_t>(high - low - 1);
        if (largest == 0) return low;
        const uint32_t mask = ~uint32_t{0} >> std::countl_zero(largest);
        auto number = static_cast<uint32_t>(engine_()) & mask;
        while (number > largest) number = static_cast<uint32_t>(engine_()) & mask;
        return low + number;
    }

 private:
    std::mt19937 engine_;
};

}  // namespace kvscope::engine::ruler
