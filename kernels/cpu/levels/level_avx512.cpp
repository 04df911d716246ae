#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/level_kernels.h"

// GCC 12 warns of uninitialized operands inside its own AVX-512 intrinsics (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c,prefer-vector-width=512")
#include "kernels/cpu/levels/level_body.h"
#include "kernels/cpu/levels/simd_avx512.h"

namespace kvscope::kernels::avx512 {

constinit const LevelKernels all_kernels = kernels_of_level<SimdAvx512>();

}  // namespace kvscope::kernels::avx512
#endif
