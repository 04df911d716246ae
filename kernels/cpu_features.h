#pragma once

namespace kvscope::kernels {

/// Instruction sets of the CPU kernels. Each level includes the previous ones.
enum class SimdLevel { generic, avx2, avx512, avx512_bf16 };

[[nodiscard]] const char* name_of(SimdLevel level);

/// Returns the best level of this processor, or the level that the environment variable KVSCOPE_SIMD names, read once.
/// Throws std::invalid_argument if KVSCOPE_SIMD is not a level's name or the processor lacks that level.
[[nodiscard]] SimdLevel simd_level();

/// Forces a level during its lifetime, on one thread at a time. Throws std::invalid_argument if the processor lacks it.
class ForcedSimdLevel {
 public:
    explicit ForcedSimdLevel(SimdLevel level);
    ~ForcedSimdLevel();
    ForcedSimdLevel(const ForcedSimdLevel&) = delete;
    ForcedSimdLevel& operator=(const ForcedSimdLevel&) = delete;

 private:
    SimdLevel previous_;
};

/// Returns the best level of this processor, regardless of KVSCOPE_SIMD.
[[nodiscard]] SimdLevel supported_simd_level();

}  // namespace kvscope::kernels
