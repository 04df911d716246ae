#pragma once

#include "kernels/cpu/levels/linear_direct_body.h"
#include "kernels/cpu/levels/linear_panel_body.h"

namespace kvscope::kernels {

/// Products y = x W^T. The order of a sum does not depend on other rows or on whether weights are transposed:
///   for each block of `in` (block sizes depend only on `in`)
///       vector of sums = 0; for each operand: sums += x . w, lane by lane
///       result += the sums, added across lanes in a fixed tree
template <class Simd, class Factors>
[[nodiscard]] constexpr LinearKernel make_linear_kernel() {
    using Layout = LinearLayout<Simd, Factors>;
    using Direct = LinearDirect<Simd, Factors>;
    using Panel = LinearPanel<Simd, Factors>;
    constexpr bool is_f32 = sizeof(typename Factors::T) == sizeof(float);
    constexpr int up_to = is_f32 ? Simd::direct_f32_up_to : Simd::direct_bf16_up_to;
    constexpr int stored_up_to = is_f32 ? Simd::stored_f32_up_to : Simd::stored_bf16_up_to;
    static_assert(!Direct::has_pieces ||
                  (up_to <= Direct::most_rows_of_piece && stored_up_to <= Direct::most_rows_of_piece));
    return {
        up_to,
        stored_up_to,
        LinearTile<Simd, Factors>::most_rows,
        Panel::most_rows,
        [](int64_t in) { return static_cast<size_t>(Layout::packed_elems(in)) * sizeof(typename Factors::elem); },
        Panel::panel_bytes,
        [](int64_t in) {
            return Direct::decoded_bytes(in) > Panel::decoded_bytes(in) ? Direct::decoded_bytes(in)
                                                                        : Panel::decoded_bytes(in);
        },
        Layout::pack,
        [](const LinearTask& task) { task.panel != nullptr ? Panel::multiply(task) : Direct::multiply(task); },
    };
}

}  // namespace kvscope::kernels
