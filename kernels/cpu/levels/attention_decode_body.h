#pragma once

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/level_kernels.h"

namespace kvscope::kernels {

template <class Simd>
struct F32Rows {
    using T = float;
    using vec = typename Simd::vec;
    using operand = vec;
    static constexpr int step_elements = Simd::lanes;
    [[nodiscard]] static operand load(const T* p) { return Simd::load(p); }
    [[nodiscard]] static vec mac(vec acc, operand a, operand b) { return Simd::fma(a, b, acc); }
    [[nodiscard]] static vec load_narrow(const T* p) { return Simd::load(p); }

    /// Loads 2 * lanes columns as two vectors, in an order that store_columns() undoes.
    static void load_columns(const T* p, vec (&x)[2]) {
        x[0] = Simd::load(p);
        x[1] = Simd::load(p + Simd::lanes);
    }
    static void store_columns(float* p, const vec (&x)[2]) {
        Simd::store(p, x[0]);
        Simd::store(p + Simd::lanes, x[1]);
    }
};

/// Reads bf16 rows as one vector of even and one vector of odd elements. Each takes one operation.
template <class Simd>
struct Bf16Rows {
    using T = bf16;
    using vec = typename Simd::vec;
    struct operand {
        vec even, odd;
    };
    static constexpr int step_elements = 2 * Simd::lanes;
    [[nodiscard]] static operand load(const T* p) {
        operand x;  // NOLINT(*-member-init): filled below
        Simd::load_bf16_halves(p, x.even, x.odd);
        return x;
    }
    [[nodiscard]] static vec mac(vec acc, operand a, operand b) {
        return Simd::fma(a.odd, b.odd, Simd::fma(a.even, b.even, acc));
    }
    [[nodiscard]] static vec load_narrow(const T* p) { return Simd::load_bf16(p); }

    static void load_columns(const T* p, vec (&x)[2]) { Simd::load_bf16_halves(p, x[0], x[1]); }
    static void store_columns(float* p, const vec (&x)[2]) {
        float even[Simd::lanes], odd[Simd::lanes];
        Simd::store(even, x[0]);
        Simd::store(odd, x[1]);
        for (int i = 0; i < Simd::lanes; ++i) {
            p[2 * i] = even[i];
            p[2 * i + 1] = odd[i];
        }
    }
};

/// Attention of a few queries over a row. Memory bandwidth is the limit, so each entry is loaded once for many queries.
template <class Simd, class Bf16Reader = Bf16Rows<Simd>>
struct AttentionDecodeBody {
    using vec = typename Simd::vec;
    static constexpr int lanes = Simd::lanes;
    static constexpr int queries_at_once = lanes == 16 ? 4 : 2;  ///< leaves registers for 4 vectors of each query
    static constexpr float padding_logit = -1e30f;

    static void segment(const DecodeSegment& segment, int head_dim, DType dtype, float scale) {
        if (dtype == DType::f32)
            of_size<F32Rows<Simd>>(segment, head_dim, scale);
        else
            segment_of_bf16(segment, head_dim, scale);
    }

    static void segment_of_bf16(const DecodeSegment& segment, int head_dim, float scale) {
        of_size<Bf16Reader>(segment, head_dim, scale);
    }

 private:
    /// Passes common head sizes as constants, so that queries stay in registers.
    template <class Rows>
    static void of_size(const DecodeSegment& segment, int d, float scale) {
        if (segment.row->key_dim != 0 && segment.row->key_dim != d) return of_rows<Rows, 0>(segment, d, scale);
        switch (d) {
            case 64:
                return of_rows<Rows, 64>(segment, d, scale);
            case 128:
                return of_rows<Rows, 128>(segment, d, scale);
            default:
                return of_rows<Rows, 0>(segment, d, scale);
        }
    }

    template <class Rows, int D>
    static void of_rows(const DecodeSegment& segment, int d, float scale) {
        int query = 0;
        for (; query + queries_at_once <= segment.row->n_queries; query += queries_at_once)
            queries<Rows, D, queries_at_once>(segment, query, d, scale);
        switch (segment.row->n_queries - query) {
            case 3:
                queries<Rows, D, 3>(segment, query, d, scale);
                break;
            case 2:
                queries<Rows, D, 2>(segment, query, d, scale);
                break;
            case 1:
                queries<Rows, D, 1>(segment, query, d, scale);
                break;
            default:
                break;
        }
    }

    template <class Rows, int D, int Q>
    static void queries(const DecodeSegment& segment, int first, int runtime_d, float scale) {
        using T = typename Rows::T;
        const DecodeRow& row = *segment.row;
        const int d = D ? D : runtime_d, key_dim = D ? D : row.key_dim ? row.key_dim : runtime_d;
        const int64_t count = segment.end - segment.begin;
        const T* k = static_cast<const T*>(row.k) + segment.begin * row.k_stride;
        const T* v = static_cast<const T*>(row.v) + segment.begin * row.v_stride;
        alignas(64) float weights[Q][segment_entries];
        logits<Rows, D, Q>(static_cast<const T*>(row.q) + first * row.q_stride, row.q_stride,
                           {k, row.k_stride, key_dim}, {v, row.v_stride, d}, count, weights);

        const float* cardinality = row.cardinality ? row.cardinality + segment.begin : nullptr;
        for (int i = 0; i < Q; ++i) {
            weigh(weights[i], count, scale * 1.4426950408889634f, cardinality, segment.largest[first + i],
                  segment.total[first + i]);
            if (row.attention) {
                const int64_t stride = row.attention_stride ? row.attention_stride : row.n_entries;
                float* to = row.attention + (first + i) * stride + segment.begin;
                for (int64_t j = 0; j < count; ++j)
                    to[j] = cardinality ? weights[i][j] * cardinality[j] : weights[i][j];
            }
        }

        if (segment.weights) {
            for (int i = 0; i < Q; ++i)
                for (int64_t j = 0; j < count; ++j) segment.weights[(first + i) * decode_tile + j] = weights[i][j];
            return;
        }
        float* out = segment.values + static_cast<int64_t>(first) * d;
        NextKeys<T> next = first == 0 ? NextKeys<T>(segment.next, d) : NextKeys<T>();
        int c = 0;
        for (; c + 4 * lanes <= d; c += 4 * lanes, next = {})
            add_values<Rows, Q, 2>(weights, v + c, row.v_stride, count, out + c, d, next);
        for (; c + 2 * lanes <= d; c += 2 * lanes, next = {})
            add_values<Rows, Q, 1>(weights, v + c, row.v_stride, count, out + c, d, next);
        for (; c + lanes <= d; c += lanes) add_narrow<Rows, Q>(weights, v + c, row.v_stride, count, out + c, d);
        for (; c < d; ++c)
            for (int i = 0; i < Q; ++i) {
                float sum = 0;
                for (int64_t j = 0; j < count; ++j) sum += weights[i][j] * to_float(v[j * row.v_stride + c]);
                out[i * d + c] = sum;
            }
    }

    template <class T>
    struct NextKeys {
        const T* data = nullptr;
        int64_t stride = 0, count = 0;
        int d = 0;
        NextKeys() = default;
        NextKeys(const DecodeSegment* segment, int head_dim) {
            if (segment == nullptr || segment->row->k == nullptr) return;
            stride = segment->row->k_stride;
            data = static_cast<const T*>(segment->row->k) + segment->begin * stride;
            count = segment->end - segment->begin;
            d = segment->row->key_dim ? segment->row->key_dim : head_dim;
        }
        [[gnu::always_inline]] void prefetch_entry(int64_t j) const {
            if (j < count) prefetch(data + j * stride, d);
        }
    };

    template <class T>
    [[gnu::always_inline]] static inline void prefetch(const T* row, int d) {
        const char* p = reinterpret_cast<const char*>(row);
        for (int at = 0; at < d * static_cast<int>(sizeof(T)); at += 64) __builtin_prefetch(p + at, 0, 2);
    }

    template <class Rows, int Q>
    [[gnu::always_inline]] static inline void dot(const typename Rows::T* q, int64_t q_stride,
                                                  const typename Rows::T* key, int d, vec (&acc)[Q]) {
#pragma GCC unroll 4
        for (int i = 0; i < Q; ++i) acc[i] = Simd::zero();
        int c = 0;
        for (; c + Rows::step_elements <= d; c += Rows::step_elements) {
            const typename Rows::operand x = Rows::load(key + c);
#pragma GCC unroll 4
            for (int i = 0; i < Q; ++i) acc[i] = Rows::mac(acc[i], Rows::load(q + i * q_stride + c), x);
        }
        for (; c + lanes <= d; c += lanes) {
            const vec x = Rows::load_narrow(key + c);
            for (int i = 0; i < Q; ++i) acc[i] = Simd::fma(Rows::load_narrow(q + i * q_stride + c), x, acc[i]);
        }
        if (c == d) return;
        for (int i = 0; i < Q; ++i) {
            float products[lanes] = {};
            for (int e = 0; c + e < d; ++e) products[e] = to_float(q[i * q_stride + c + e]) * to_float(key[c + e]);
            acc[i] = Simd::add(acc[i], Simd::load(products));
        }
    }

    template <class T>
    struct Vectors {
        const T* data;
        int64_t stride;
        int d;
        [[nodiscard]] [[gnu::always_inline]] const T* operator[](int64_t entry) const { return data + entry * stride; }
    };

    /// Computes weights[i][j] = q_i . k_j, padded with padding_logit to a multiple of lanes.
    template <class Rows, int D, int Q>
    static void logits(const typename Rows::T* q, int64_t q_stride, const Vectors<typename Rows::T>& k,
                       const Vectors<typename Rows::T>& v, int64_t count, float (&weights)[Q][segment_entries]) {
        const int d = D ? D : k.d;
        constexpr int entries_ahead = 32;
        for (int64_t j = 0; j < count; j += lanes) {
            vec folded[Q][lanes / 4];
#pragma GCC unroll 4
            for (int group = 0; group < lanes / 4; ++group) {
                vec acc[4][Q];
#pragma GCC unroll 4
                for (int e = 0; e < 4; ++e) {
                    const int64_t entry = j + 4 * group + e;
                    const int64_t exists =
                        entry < count ? entry : count - 1;  // the repeated last entry is overwritten below
                    prefetch(v[exists], D ? D : v.d);
                    prefetch(k[entry + entries_ahead < count ? entry + entries_ahead : count - 1], d);
                    dot<Rows, Q>(q, q_stride, k[exists], d, acc[e]);
                }
#pragma GCC unroll 4
                for (int i = 0; i < Q; ++i) folded[i][group] = Simd::fold(acc[0][i], acc[1][i], acc[2][i], acc[3][i]);
            }
#pragma GCC unroll 4
            for (int i = 0; i < Q; ++i) Simd::store(weights[i] + j, Simd::join_folded(folded[i]));
        }
        const int64_t padded = (count + lanes - 1) / lanes * lanes;
        for (int i = 0; i < Q; ++i)
            for (int64_t j = count; j < padded; ++j) weights[i][j] = padding_logit;
    }

    static void weigh(float* weights, int64_t count, float c, const float* cardinality, float& largest, float& total) {
        vec maximum = Simd::set1(padding_logit);
        for (int64_t j = 0; j < count; j += lanes) maximum = Simd::max(maximum, Simd::load(weights + j));
        largest = Simd::maximum(maximum) * c;
        const vec factor = Simd::set1(c), reference = Simd::set1(largest);
        vec sum = Simd::zero();
        for (int64_t j = 0; j < count; j += lanes) {
            const vec p = Simd::exp2(Simd::sub(Simd::mul(Simd::load(weights + j), factor), reference));
            Simd::store(weights + j, p);
            if (cardinality == nullptr) sum = Simd::add(sum, p);
        }
        total = Simd::sum(sum);
        if (cardinality != nullptr)
            for (int64_t j = 0; j < count; ++j) total += weights[j] * cardinality[j];
    }

    template <class Rows, int Q, int V>
    static void add_values(const float (&weights)[Q][segment_entries], const typename Rows::T* v, int64_t stride,
                           int64_t count, float* out, int d, const NextKeys<typename Rows::T>& next) {
        vec acc[Q][V][2];
#pragma GCC unroll 4
        for (int i = 0; i < Q; ++i)
#pragma GCC unroll 4
            for (int c = 0; c < 2 * V; ++c) acc[i][c / 2][c % 2] = Simd::zero();
        for (int64_t j = 0; j < count; ++j) {
            next.prefetch_entry(j);
            vec x[V][2];
#pragma GCC unroll 4
            for (int c = 0; c < V; ++c) Rows::load_columns(v + j * stride + c * 2 * lanes, x[c]);
#pragma GCC unroll 4
            for (int i = 0; i < Q; ++i) {
                const vec p = Simd::set1(weights[i][j]);
#pragma GCC unroll 4
                for (int c = 0; c < 2 * V; ++c)
                    acc[i][c / 2][c % 2] = Simd::fma(p, x[c / 2][c % 2], acc[i][c / 2][c % 2]);
            }
        }
        for (int i = 0; i < Q; ++i)
            for (int c = 0; c < V; ++c) Rows::store_columns(out + i * d + c * 2 * lanes, acc[i][c]);
    }

    template <class Rows, int Q>
    static void add_narrow(const float (&weights)[Q][segment_entries], const typename Rows::T* v, int64_t stride,
                           int64_t count, float* out, int d) {
        vec acc[Q];
        for (int i = 0; i < Q; ++i) acc[i] = Simd::zero();
        for (int64_t j = 0; j < count; ++j) {
            const vec x = Rows::load_narrow(v + j * stride);
            for (int i = 0; i < Q; ++i) acc[i] = Simd::fma(Simd::set1(weights[i][j]), x, acc[i]);
        }
        for (int i = 0; i < Q; ++i) Simd::store(out + i * d, acc[i]);
    }
};

}  // namespace kvscope::kernels
