#include "kernels/cpu_features.h"

#include <cstdlib>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kvscope::kernels {

namespace {

constexpr const char* level_names[] = {"generic", "avx2", "avx512", "avx512_bf16"};

#if defined(__x86_64__)
/// clang 14's __builtin_cpu_supports does not know F16C.
bool has_f16c() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

SimdLevel detect() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    // __builtin_cpu_supports also checks that the operating system saves the wide registers.
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) return SimdLevel::generic;
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (!avx512) return SimdLevel::avx2;
    return __builtin_cpu_supports("avx512bf16") ? SimdLevel::avx512_bf16 : SimdLevel::avx512;
#else
    return SimdLevel::generic;
#endif
}

void require_supported(SimdLevel level, const std::string& wanted_by = {}) {
    if (level > supported_simd_level())
        throw std::invalid_argument(wanted_by + "this processor does not support " + name_of(level) +
                                    "; it supports at most " + name_of(supported_simd_level()));
}

SimdLevel chosen() {
    const char* wanted = std::getenv("KVSCOPE_SIMD");
    if (wanted == nullptr || *wanted == '\0') return supported_simd_level();
    for (size_t i = 0; i < std::size(level_names); ++i)
        if (std::string_view(wanted) == level_names[i]) {
            const auto level = static_cast<SimdLevel>(i);
            require_supported(level, std::string("KVSCOPE_SIMD is '") + wanted + "': ");
            return level;
        }
    throw std::invalid_argument(std::string("KVSCOPE_SIMD is '") + wanted +
                                "'; expected generic, avx2, avx512 or avx512_bf16");
}

std::optional<SimdLevel> forced;

}  // namespace

const char* name_of(SimdLevel level) { return level_names[static_cast<size_t>(level)]; }

SimdLevel supported_simd_level() {
    static const SimdLevel level = detect();
    return level;
}

SimdLevel simd_level() {
    if (forced) return *forced;
    static const SimdLevel level = chosen();
    return level;
}

ForcedSimdLevel::ForcedSimdLevel(SimdLevel level) : previous_(simd_level()) {
    require_supported(level);
    forced = level;
}

ForcedSimdLevel::~ForcedSimdLevel() { forced = previous_; }

}  // namespace kvscope::kernels
