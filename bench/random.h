#pragma once

#include <cstddef>
#include <cstdint>

namespace kvscope::bench {

/// Random numbers of SplitMix64 (Steele, Lea, Flood 2014), which are the same on all machines.
class Random {
 public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    /// Starts an independent stream for the numbers a, b and c.
    Random(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) : state_(seed) {
        for (const std::uint64_t part : {a, b, c}) state_ = next() ^ part;
        next();
    }
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    [[nodiscard]] float uniform() { return static_cast<float>(next() >> 40) / 16777216.0F; }
    [[nodiscard]] std::size_t below(std::size_t end) { return static_cast<std::size_t>(next() % end); }

 private:
    std::uint64_t state_;
};

}  // namespace kvscope::bench
