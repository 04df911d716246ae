#include "kernels/cpu/attention_block_body.h"
#include "kernels/cpu/attention_decode_body.h"
#include "kernels/cpu/elementwise_body.h"
#include "kernels/cpu/level_kernels.h"
#include "kernels/cpu/simd_generic.h"

namespace kvscope::kernels::generic {

using Block = AttentionBlockBody<SimdGeneric, F32Products<SimdGeneric>>;
using Elementwise = ElementwiseBody<SimdGeneric>;

const LevelKernels kKernels = {
    {Block::queries_per_block, Block::fewest_queries, Block::scratch_bytes, Block::compute},
    AttentionDecodeBody<SimdGeneric>::segment,
    Elementwise::rms_norm,
    Elementwise::add_rms_norm,
    Elementwise::rope,
    Elementwise::swiglu,
};

}  // namespace kvscope::kernels::generic
