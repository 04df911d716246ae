#include "engine/tasks/helmet/permutation.h"

#include <array>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

namespace kvscope::engine::helmet {
namespace {

__extension__ using Wide = unsigned __int128;

/// The numbers of NumPy's `PCG64(SeedSequence(seed))`.
class Pcg64 {
 public:
    explicit Pcg64(uint64_t seed) {
        const auto words = seed_words(seed);
        increment_ = (wide(words[2], words[3]) << 1) | 1;
        step();
        state_ += wide(words[0], words[1]);
        step();
    }

    /// Returns a number from 0 to `largest`.
    [[nodiscard]] uint32_t up_to(uint32_t largest) {
        const uint32_t mask = ~uint32_t{0} >> std::countl_zero(largest);
        uint32_t number = next() & mask;
        while (number > largest) number = next() & mask;
        return number;
    }

 private:
    static Wide wide(uint64_t high, uint64_t low) { return (Wide{high} << 64) | low; }

    /// Returns `SeedSequence(seed).generate_state(4, uint64)`.
    static std::array<uint64_t, 4> seed_words(uint64_t seed) {
        constexpr uint32_t a = 0x43b0d7e5, times_a = 0x931e8875, b = 0x8b51f9dd, times_b = 0x58f38ded;
        constexpr uint32_t mix_left = 0xca01f9dd, mix_right = 0x4973f715;
        uint32_t factor = a;
        const auto hashed = [&](uint32_t value, uint32_t times) {
            value ^= factor;
            factor *= times;
            value *= factor;
            return value ^ (value >> 16);
        };
        std::array<uint32_t, 4> pool{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, 0};
        for (uint32_t& word : pool) word = hashed(word, times_a);
        for (size_t from = 0; from < pool.size(); ++from) {
            for (size_t to = 0; to < pool.size(); ++to) {
                if (from == to) continue;
                const uint32_t mixed = mix_left * pool[to] - mix_right * hashed(pool[from], times_a);
                pool[to] = mixed ^ (mixed >> 16);
            }
        }
        factor = b;
        std::array<uint64_t, 4> words{};
        for (size_t i = 0; i < 2 * words.size(); ++i)
            words[i / 2] |= uint64_t{hashed(pool[i % pool.size()], times_b)} << (32 * (i % 2));
        return words;
    }

    void step() {
        constexpr uint64_t high = 2549297995355413924U, low = 4865540595714422341U;
        state_ = state_ * wide(high, low) + increment_;
    }

    uint32_t next() {
        if (rest_) return *std::exchange(rest_, std::nullopt);
        step();
        const auto folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
        const uint64_t number = std::rotr(folded, static_cast<int>(state_ >> 122));
        rest_ = static_cast<uint32_t>(number >> 32);
        return static_cast<uint32_t>(number);
    }

    Wide state_ = 0, increment_ = 0;
    std::optional<uint32_t> rest_;  ///< upper half of the last number
};

}  // namespace

std::vector<size_t> permutation(size_t n, uint64_t seed) {
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    Pcg64 random(seed);
    for (size_t i = n; i-- > 1;) std::swap(order[i], order[random.up_to(static_cast<uint32_t>(i))]);
    return order;
}

}  // namespace kvscope::engine::helmet
