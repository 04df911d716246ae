#include "kernels/cpu/attention_block_body.h"
#include "kernels/cpu/simd_generic.h"

namespace kvscope::kernels::generic {

using Body = AttentionBlockBody<SimdGeneric, F32Products<SimdGeneric>>;

const AttentionBlockKernel kAttentionBlock = {Body::queries_per_block, Body::scratch_bytes, Body::compute};

}  // namespace kvscope::kernels::generic
