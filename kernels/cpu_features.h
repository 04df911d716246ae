#pragma once

#include <string_view>

namespace kvscope::kernels {

/// Instruction sets that the CPU kernels are written for, each including those before it.
enum class SimdLevel { generic, avx2, avx512, avx512_bf16 };

/// generic | avx2 | avx512 | avx512_bf16.
const char* name_of(SimdLevel level);

/// What this processor and operating system support, or less where the environment variable KVSCOPE_SIMD (a level's
/// name) says so. Asked once, at the first call.
/// @throws std::invalid_argument where KVSCOPE_SIMD is no level's name, or one that the processor lacks.
SimdLevel simd_level();

/// Makes the kernels use `level` until the returned object goes; for tests and benchmarks, one thread at a time.
/// @throws std::invalid_argument where the processor lacks the level.
class ForcedSimdLevel {
 public:
    explicit ForcedSimdLevel(SimdLevel level);
    ~ForcedSimdLevel();
    ForcedSimdLevel(const ForcedSimdLevel&) = delete;
    ForcedSimdLevel& operator=(const ForcedSimdLevel&) = delete;

 private:
    SimdLevel previous_;
};

/// The best level that the processor supports, whatever KVSCOPE_SIMD says.
SimdLevel supported_simd_level();

}  // namespace kvscope::kernels
