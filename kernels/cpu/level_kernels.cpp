#include "kernels/cpu/level_kernels.h"

#include "kernels/cpu_features.h"

namespace kvscope::kernels {

const LevelKernels& level_kernels() {
#if defined(__x86_64__)
    switch (simd_level()) {
        case SimdLevel::avx512_bf16: {
            static const LevelKernels kernels = avx512_bf16::make_kernels();
            return kernels;
        }
        case SimdLevel::avx512:
            return avx512::kKernels;
        case SimdLevel::avx2:
            return avx2::kKernels;
        case SimdLevel::generic:
            break;
    }
#endif
    return generic::kKernels;
}

}  // namespace kvscope::kernels
