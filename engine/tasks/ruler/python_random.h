#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope::engine::ruler {

/// The numbers of CPython 3.11's `random.Random(seed)`.
class PythonRandom {
 public:
    explicit PythonRandom(uint64_t seed);

    [[nodiscard]] double random();  ///< in [0, 1), a multiple of 2^-53
    /// Returns an integer from 0 to n - 1. @param n at least 1
    [[nodiscard]] size_t below(size_t n);
    /// Returns an integer from `low` to `high`, both included.
    [[nodiscard]] int64_t randint(int64_t low, int64_t high);
    /// Returns `uuid.UUID(int=random.getrandbits(128), version=4)` as text.
    [[nodiscard]] std::string uuid4();
    /// Returns `''.join(random.choices(letters, k=k))`.
    [[nodiscard]] std::string letters(std::string_view letters, int k);
    /// Returns the indices of `random.sample(population, k)` for n elements; nullopt where Python raises ValueError.
    [[nodiscard]] std::optional<std::vector<size_t>> sample(size_t n, size_t k);

    template <class T>
    void shuffle(std::vector<T>& list) {
        for (size_t i = list.size(); i-- > 1;) std::swap(list[i], list[below(i + 1)]);
    }

 private:
    /// Returns an integer of k bits, from 1 to 32.
    [[nodiscard]] uint32_t bits(int k) { return static_cast<uint32_t>(engine_() >> (32 - k)); }

    std::mt19937 engine_;
};

}  // namespace kvscope::engine::ruler
