#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/bf16.h"
#include "kernels/cpu/level_kernels.h"

// GCC 12 takes the undefined operands inside its own AVX-512 intrinsics for uninitialised ones (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,prefer-vector-width=512")
#include "kernels/cpu/attention_block_body.h"
#include "kernels/cpu/attention_decode_body.h"
#include "kernels/cpu/elementwise_body.h"
#include "kernels/cpu/linear_body.h"
#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/stored_numbers_body.h"

namespace kvscope::kernels::avx512 {

using Block = AttentionBlockBody<SimdAvx512, F32Products<SimdAvx512>>;
using Elementwise = ElementwiseBody<SimdAvx512>;
using LinearF32 = LinearBody<SimdAvx512, F32Factors<SimdAvx512>>;
using LinearBf16 = LinearBody<SimdAvx512, WidenedFactors<SimdAvx512>>;
using Stored = StoredNumbersBody<SimdAvx512>;

const LevelKernels kKernels = {
    {Block::queries_per_block, Block::fewest_queries, Block::scratch_bytes, Block::compute},
    AttentionDecodeBody<SimdAvx512>::segment,
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

}  // namespace kvscope::kernels::avx512
#endif
