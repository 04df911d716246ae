#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu_features.h"
#include "kernels/types.h"

/// Shared parts of the kernels' tests. Each test runs at every SIMD level of the processor, against plain loops in
/// double.
namespace kvscope::kernels::testing {

[[nodiscard]] inline std::vector<SimdLevel> levels() {
    std::vector<SimdLevel> all;
    for (const auto level : {SimdLevel::generic, SimdLevel::avx2, SimdLevel::avx512, SimdLevel::avx512_bf16})
        if (level <= supported_simd_level()) all.push_back(level);
    return all;
}

template <class T>
inline constexpr DType dtype_of = sizeof(T) == 4 ? DType::f32 : DType::bf16;

template <class T>
[[nodiscard]] std::vector<T> random_values(size_t n, unsigned seed, float deviation = 1.0f) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, deviation);
    std::vector<T> values(n);
    for (auto& value : values) value = from_float<T>(normal(random));
    return values;
}

template <class T>
[[nodiscard]] double value(const std::vector<T>& values, int64_t index) {
    return static_cast<double>(to_float(values.at(static_cast<size_t>(index))));
}

template <class T>
[[nodiscard]] bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
        if (to_float(a[i]) != to_float(b[i])) return false;
    return true;
}

/// Fills a block's shared memory with garbage.
template <class Shared>
[[nodiscard]] Shared& spoiled(Shared& shared) {
    std::memset(static_cast<void*>(&shared), 0xff, sizeof shared);
    return shared;
}

/// Largest relative error of one rounding to the type.
template <class T>
inline constexpr double rounding = sizeof(T) == 4 ? 0x1p-24 : 0x1p-8;

}  // namespace kvscope::kernels::testing
