#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/level_kernels.h"

#pragma GCC target("avx2,fma,f16c")
#include "kernels/cpu/levels/level_body.h"
#include "kernels/cpu/levels/simd_avx2.h"

namespace kvscope::kernels::avx2 {

constinit const LevelKernels all_kernels = kernels_of_level<SimdAvx2>();

}  // namespace kvscope::kernels::avx2
#endif
