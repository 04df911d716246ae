#pragma once

#include "kernels/cpu/levels/adjacent_outer_products_body.h"
#include "kernels/cpu/levels/attention_block_body.h"
#include "kernels/cpu/levels/attention_decode_body.h"
#include "kernels/cpu/levels/elementwise_body.h"
#include "kernels/cpu/levels/expand_weights_body.h"
#include "kernels/cpu/levels/level_kernels.h"
#include "kernels/cpu/levels/linear_body.h"
#include "kernels/cpu/levels/stored_number_products_body.h"

namespace kvscope::kernels {

/// Returns the kernels of a level without bf16 instructions. Runs at compile time, as the processor may lack the level.
template <class Simd>
[[nodiscard]] constexpr LevelKernels kernels_of_level() {
    using Block = AttentionBlockBody<Simd, F32Products<Simd>>;
    using Elementwise = ElementwiseBody<Simd>;
    using Stored = StoredNumberProductsBody<Simd>;
    using Neighbours = AdjacentOuterProductsBody<Simd>;
    return {
        {Block::queries_per_block, Block::fewest_queries, Block::scratch_bytes, Block::compute},
        AttentionDecodeBody<Simd>::segment,
        Elementwise::rms_norm,
        Elementwise::add_rms_norm,
        Elementwise::rope,
        Elementwise::swiglu,
        Elementwise::log_softmax,
        Elementwise::divergence_of_logs,
        Stored::add_product_with_map,
        Stored::add_weighted,
        Neighbours::scratch_bytes,
        Neighbours::head,
        make_linear_kernel<Simd, F32Factors<Simd>>(),
        make_linear_kernel<Simd, WidenedFactors<Simd>>(),
        ExpandWeightsBody<Simd>::template decode<float>,
        ExpandWeightsBody<Simd>::template decode<bf16>,
    };
}

}  // namespace kvscope::kernels
