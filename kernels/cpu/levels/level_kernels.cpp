#include "kernels/cpu/levels/level_kernels.h"

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
            return avx512::all_kernels;
        case SimdLevel::avx2:
            return avx2::all_kernels;
        case SimdLevel::generic:
            break;
    }
#endif
    return generic::all_kernels;
}

}  // namespace kvscope::kernels
