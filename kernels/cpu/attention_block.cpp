#include "kernels/cpu/attention_block.h"

namespace kvscope::kernels {

const AttentionBlockKernel& attention_block_kernel([[maybe_unused]] SimdLevel level) {
#if defined(__x86_64__)
    switch (level) {
        case SimdLevel::avx512_bf16: return avx512_bf16::kAttentionBlock;
        case SimdLevel::avx512: return avx512::kAttentionBlock;
        case SimdLevel::avx2: return avx2::kAttentionBlock;
        case SimdLevel::generic: break;
    }
#endif
    return generic::kAttentionBlock;
}

}  // namespace kvscope::kernels
