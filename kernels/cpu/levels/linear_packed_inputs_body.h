#pragma once

#include <cstdint>

#include "kernels/bf16.h"

namespace kvscope::kernels {

template <class Simd>
struct PackedF32 {
    using elem = float;  ///< type of packed numbers
    using vec = typename Simd::vec;
    using operand = vec;
    static constexpr int part_elements = Simd::lanes;  ///< elements of an operand
    [[nodiscard]] static operand load_packed(const elem* p) { return Simd::load(p); }
    static void store_packed(elem* p, operand x) { Simd::store(p, x); }
    [[nodiscard]] static operand everywhere(const elem* p) { return Simd::set1(*p); }
    [[nodiscard]] static vec bits(operand x) { return x; }
    [[nodiscard]] static operand of_bits(vec x) { return x; }
    [[nodiscard]] static vec mac(vec acc, operand a, operand b) { return Simd::fma(a, b, acc); }
};

template <class Simd>
struct F32Factors : PackedF32<Simd> {
    using T = float;                                   ///< element type of the arrays
    static constexpr int step_elements = Simd::lanes;  ///< elements of `in` per step
    static constexpr int parts_of_step = 1;            ///< operands per step
    template <int part>
    [[nodiscard]] static auto load(const T* p) {
        return Simd::load(p);
    }
};

template <class Simd>
struct WidenedFactors : PackedF32<Simd> {
    using T = bf16;
    static constexpr int step_elements = 2 * Simd::lanes;
    static constexpr int parts_of_step = 2;
    template <int part>
    [[nodiscard]] static auto load(const T* p) {
        typename Simd::vec even, odd;
        Simd::load_bf16_halves(p, even, odd);
        return part == 0 ? even : odd;
    }
};

/// Order of multiplications and memory layout of a product. Both are the same for any number of rows.
template <class Simd, class Factors>
struct LinearLayout {
    using T = typename Factors::T;
    using elem = typename Factors::elem;
    static constexpr int step_elements = Factors::step_elements, parts_of_step = Factors::parts_of_step,
                         part_elements = Factors::part_elements;
    static_assert(parts_of_step * part_elements ==
                  step_elements);  // so that each packed element is one element of `in`
    static constexpr int64_t most_block_elements =
        4096 / sizeof(elem);  ///< largest number of elements of `in` in a block

    [[nodiscard]] static int64_t steps(int64_t count) { return (count + step_elements - 1) / step_elements; }
    /// Returns the number of packed elements of a row of x: whole steps, with zeros after `in` elements.
    [[nodiscard]] static int64_t packed_elems(int64_t in) { return steps(in) * step_elements; }

    /// Returns the number of elements per block. Blocks are nearly equal and consist of whole steps and groups of 32.
    [[nodiscard]] static int64_t block_elements(int64_t in) {
        constexpr int64_t together = step_elements > 32 ? step_elements : 32;
        const int64_t n_blocks = (in + most_block_elements - 1) / most_block_elements;
        return ((in + n_blocks - 1) / n_blocks + together - 1) / together * together;
    }

    /// The last elements of R rows, from element `from` to `in`, padded with zeros to a step.
    template <int R>
    struct Rest {
        T data[R][step_elements] = {};
        const T* at[R];
        Rest(const T* const (&rows)[R], int64_t from, int64_t in) {
            for (int r = 0; r < R; ++r) {
                for (int64_t i = from; i < in; ++i) data[r][i - from] = rows[r][i];
                at[r] = data[r];
            }
        }
    };

    /// Packs the rows of x of one tile as (steps, parts, n_rows, part_elements).
    static void pack(const void* x, int64_t stride, int64_t n_rows, int64_t in, void* packed) {
        const int64_t beside = n_rows * part_elements;
        for (int64_t row = 0; row < n_rows; ++row) {
            const T* const from[1] = {static_cast<const T*>(x) + row * stride};
            elem* to = static_cast<elem*>(packed) + row * part_elements;
            int64_t i = 0;
            for (; i + step_elements <= in; i += step_elements, to += parts_of_step * beside)
                pack_step<0>(from[0] + i, to, beside);
            if (i < in) pack_step<0>(Rest<1>(from, i, in).at[0], to, beside);
        }
    }

    template <int n>
    struct Count {
        static constexpr int value = n;
    };
    template <int most, class Call>
    static void with_count(int64_t count, const Call& call) {
        if (count == most)
            call(Count<most>{});
        else if constexpr (most > 1)
            with_count<most - 1>(count, call);
    }

 private:
    template <int part>
    static void pack_step(const T* from, elem* to, int64_t beside) {
        Factors::store_packed(to + part * beside, Factors::template load<part>(from));
        if constexpr (part + 1 < parts_of_step) pack_step<part + 1>(from, to, beside);
    }
};

}  // namespace kvscope::kernels
