#include "kernels/cpu/attention_block_body.h"
#include "kernels/cpu/attention_decode_body.h"
#include "kernels/cpu/elementwise_body.h"
#include "kernels/cpu/level_kernels.h"
#include "kernels/cpu/linear_body.h"
#include "kernels/cpu/simd_generic.h"
#include "kernels/cpu/stored_numbers_body.h"

namespace kvscope::kernels::generic {

using Block = AttentionBlockBody<SimdGeneric, F32Products<SimdGeneric>>;
using Elementwise = ElementwiseBody<SimdGeneric>;
using LinearF32 = LinearBody<SimdGeneric, F32Factors<SimdGeneric>>;
using LinearBf16 = LinearBody<SimdGeneric, WidenedFactors<SimdGeneric>>;
using Stored = StoredNumbersBody<SimdGeneric>;

const LevelKernels kKernels = {
    {Block::queries_per_block, Block::fewest_queries, Block::scratch_bytes, Block::compute},
    AttentionDecodeBody<SimdGeneric>::segment,
    Elementwise::rms_norm,
    Elementwise::add_rms_norm,
    Elementwise::rope,
    Elementwise::swiglu,
    Elementwise::log_softmax,
    Elementwise::divergence_of_logs,
    Stored::add_mapped,
    Stored::add_weighted,
    {LinearF32::packed_bytes, LinearF32::panel_bytes, LinearF32::pack_rows, LinearF32::multiply},
    {LinearBf16::packed_bytes, LinearBf16::panel_bytes, LinearBf16::pack_rows, LinearBf16::multiply},
};

}  // namespace kvscope::kernels::generic
