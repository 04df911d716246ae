#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/bf16.h"
#include "kernels/cpu/level_kernels.h"

#pragma GCC target("avx2,fma")
#include "kernels/cpu/attention_block_body.h"
#include "kernels/cpu/attention_decode_body.h"
#include "kernels/cpu/elementwise_body.h"
#include "kernels/cpu/linear_body.h"
#include "kernels/cpu/simd_avx2.h"
#include "kernels/cpu/stored_numbers_body.h"

namespace kvscope::kernels::avx2 {

using Block = AttentionBlockBody<SimdAvx2, F32Products<SimdAvx2>>;
using Elementwise = ElementwiseBody<SimdAvx2>;
using LinearF32 = LinearBody<SimdAvx2, F32Factors<SimdAvx2>>;
using LinearBf16 = LinearBody<SimdAvx2, WidenedFactors<SimdAvx2>>;
using Stored = StoredNumbersBody<SimdAvx2>;

const LevelKernels kKernels = {
    {Block::queries_per_block, Block::fewest_queries, Block::scratch_bytes, Block::compute},
    AttentionDecodeBody<SimdAvx2>::segment,
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

}  // namespace kvscope::kernels::avx2
#endif
