#include "engine/tasks/ruler/python_random.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

namespace kvscope::engine::ruler {
namespace {

/// Seeds std::mt19937 by the reference implementation's init_by_array (Matsumoto and Nishimura, mt19937ar.c, 2002).
struct SeedByArray {
    using result_type = uint32_t;  // NOLINT(readability-identifier-naming): std::mt19937 requires the name

    std::vector<uint32_t> key;

    template <class Iterator>
    void generate(Iterator begin, Iterator end) const {
        const auto n = static_cast<uint32_t>(end - begin);
        begin[0] = 19650218;
        for (uint32_t i = 1; i < n; ++i) begin[i] = 1812433253 * mixed(begin[i - 1]) + i;
        uint32_t i = 1, j = 0;
        const auto next = [&] {
            if (++i < n) return;
            begin[0] = begin[n - 1];
            i = 1;
        };
        for (size_t k = std::max<size_t>(n, key.size()); k > 0; --k) {
            begin[i] = (begin[i] ^ (mixed(begin[i - 1]) * 1664525)) + key[j] + j;
            next();
            if (++j == key.size()) j = 0;
        }
        for (uint32_t k = n - 1; k > 0; --k) {
            begin[i] = (begin[i] ^ (mixed(begin[i - 1]) * 1566083941)) - i;
            next();
        }
        begin[0] = 0x80000000;
    }

 private:
    static uint32_t mixed(uint32_t word) { return word ^ (word >> 30); }
};

std::mt19937 seeded_by_array(uint64_t seed) {
    SeedByArray words{{static_cast<uint32_t>(seed)}};
    if (seed >> 32) words.key.push_back(static_cast<uint32_t>(seed >> 32));
    return std::mt19937(words);
}

}  // namespace

PythonRandom::PythonRandom(uint64_t seed) : engine_(seeded_by_array(seed)) {}

double PythonRandom::random() {
    const auto high = static_cast<double>(bits(27)), low = static_cast<double>(bits(26));
    return (high * 0x1p26 + low) * 0x1p-53;
}

size_t PythonRandom::below(size_t n) {
    const int k = std::bit_width(n);
    size_t number = bits(k);
    while (number >= n) number = bits(k);
    return number;
}

int64_t PythonRandom::randint(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<size_t>(high - low + 1)));
}

std::string PythonRandom::uuid4() {
    uint64_t words[2];  // the first word that the generator returns is the lowest
    for (uint64_t& word : words) {
        word = bits(32);
        word |= uint64_t{bits(32)} << 32;
    }
    const uint64_t low = (words[0] & ~(uint64_t{0xC} << 60)) | uint64_t{0x8} << 60;
    const uint64_t high = (words[1] & ~uint64_t{0xF000}) | uint64_t{0x4000};
    return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xFFFF, high & 0xFFFF,
                       low >> 48, low & 0xFFFFFFFFFFFF);
}

std::string PythonRandom::letters(std::string_view letters, int k) {
    std::string text;
    for (int i = 0; i < k; ++i) text += letters[static_cast<size_t>(random() * static_cast<double>(letters.size()))];
    return text;
}

std::optional<std::vector<size_t>> PythonRandom::sample(size_t n, size_t k) {
    if (k > n) return std::nullopt;
    // CPython chooses the method by the memory of a set and of a list.
    double largest_list = 21;
    if (k > 5) largest_list += std::pow(4, std::ceil(std::log(static_cast<double>(3 * k)) / std::log(4.0)));
    std::vector<size_t> chosen(k);
    if (static_cast<double>(n) <= largest_list) {
        std::vector<size_t> pool(n);
        for (size_t i = 0; i < n; ++i) pool[i] = i;
        for (size_t i = 0; i < k; ++i) {
            const size_t j = below(n - i);
            chosen[i] = pool[j];
            pool[j] = pool[n - i - 1];
        }
        return chosen;
    }
    std::unordered_set<size_t> selected;
    for (size_t& place : chosen) {
        do place = below(n);
        while (!selected.insert(place).second);
    }
    return chosen;
}

}  // namespace kvscope::engine::ruler
