#pragma once

#include <cstdint>

namespace kvscope::policies {

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), with the same numbers on every machine.
class SeededRandom {
 public:
    explicit SeededRandom(uint64_t seed) : state_(seed) {}

    uint64_t next() {
        uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }

    /// Returns a uniform number in [0, 1).
    [[nodiscard]] double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

    /// Returns a uniform integer from 0 to n - 1.
    [[nodiscard]] int64_t below(int64_t n) { return static_cast<int64_t>(unit() * static_cast<double>(n)); }

 private:
    uint64_t state_;
};

/// Returns a generator with a separate sequence for each layer and row.
[[nodiscard]] inline SeededRandom row_random(uint64_t seed, int layer, int row) {
    SeededRandom of_layer(seed ^ (static_cast<uint64_t>(layer) << 32 | static_cast<uint32_t>(row)));
    return SeededRandom(of_layer.next());
}

}  // namespace kvscope::policies
