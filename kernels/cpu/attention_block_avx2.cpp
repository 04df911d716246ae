#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/bf16.h"
#include "kernels/cpu/attention_block.h"

#pragma GCC target("avx2,fma")
#include "kernels/cpu/attention_block_body.h"
#include "kernels/cpu/simd_avx2.h"

namespace kvscope::kernels::avx2 {

using Body = AttentionBlockBody<SimdAvx2, F32Products<SimdAvx2>>;

const AttentionBlockKernel kAttentionBlock = {Body::queries_per_block, Body::scratch_bytes, Body::compute};

}  // namespace kvscope::kernels::avx2
#endif
