#pragma once

// Included once per SIMD level, below its `#pragma GCC target`; see attention_block_body.h.

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/cpu/level_kernels.h"

namespace kvscope::kernels {

/// Few queries over a row's entries: memory sets the pace, so that every key and value is loaded once for up to
/// kQueries queries and all arithmetic is f32.
template <class Simd>
struct AttentionDecodeBody {
    using vec = typename Simd::vec;
    static constexpr int W = Simd::W;
    static constexpr int kQueries = W == 16 ? 4 : 2;  ///< as many as leave the registers free for 4 vectors of each
    static constexpr float kNothing = -1e30f;

    static void segment(const DecodeSegment& segment, int head_dim, DType dtype, float scale) {
        if (dtype == DType::f32)
            of_type<float>(segment, head_dim, scale);
        else
            of_type<bf16>(segment, head_dim, scale);
    }

 private:
    static vec load(const float* p) { return Simd::load(p); }
    static vec load(const bf16* p) { return Simd::load_bf16(p); }

    template <class T>
    static void of_type(const DecodeSegment& segment, int d, float scale) {
        int query = 0;
        for (; query + kQueries <= segment.row->n_queries; query += kQueries)
            queries<T, kQueries>(segment, query, d, scale);
        switch (segment.row->n_queries - query) {
            case 3:
                queries<T, 3>(segment, query, d, scale);
                break;
            case 2:
                queries<T, 2>(segment, query, d, scale);
                break;
            case 1:
                queries<T, 1>(segment, query, d, scale);
                break;
            default:
                break;
        }
    }

    template <class T, int Q>
    static void queries(const DecodeSegment& segment, int first, int d, float scale) {
        const DecodeRow& row = *segment.row;
        const int64_t count = segment.end - segment.begin;
        alignas(64) float weights[Q][kDecodeSegment];
        const T* q[Q];
        for (int i = 0; i < Q; ++i) q[i] = static_cast<const T*>(row.q) + (first + i) * row.q_stride;
        logits<T, Q>(q, static_cast<const T*>(row.k) + segment.begin * row.kv_stride, row.kv_stride, count, d, weights);

        const float* cardinality = row.cardinality ? row.cardinality + segment.begin : nullptr;
        for (int i = 0; i < Q; ++i) {
            weigh(weights[i], count, scale * 1.4426950408889634f, cardinality, segment.largest[first + i],
                  segment.total[first + i]);
            if (row.attention) {
                float* to = row.attention + (first + i) * row.n_entries + segment.begin;
                for (int64_t j = 0; j < count; ++j)
                    to[j] = cardinality ? weights[i][j] * cardinality[j] : weights[i][j];
            }
        }

        const T* v = static_cast<const T*>(row.v) + segment.begin * row.kv_stride;
        float* out = segment.values + static_cast<int64_t>(first) * d;
        int c = 0;
        for (; c + 4 * W <= d; c += 4 * W) add_values<T, Q, 4>(weights, v + c, row.kv_stride, count, out + c, d);
        for (; c + W <= d; c += W) add_values<T, Q, 1>(weights, v + c, row.kv_stride, count, out + c, d);
        for (; c < d; ++c)
            for (int i = 0; i < Q; ++i) {
                float sum = 0;
                for (int64_t j = 0; j < count; ++j) sum += weights[i][j] * to_float(v[j * row.kv_stride + c]);
                out[i * d + c] = sum;
            }
    }

    /// weights[i][j] = q_i . k_j, padded with kNothing to a multiple of W.
    template <class T, int Q>
    static void logits(const T* const (&q)[Q], const T* k, int64_t stride, int64_t count, int d,
                       float (&weights)[Q][kDecodeSegment]) {
        const int whole = d / W * W;
        for (int64_t j = 0; j < count; j += W) {
            vec sums[Q][W];
            float rest[Q][W];
            const int n = count - j < W ? static_cast<int>(count - j) : W;
            for (int e = 0; e < n; ++e) {
                const T* key = k + (j + e) * stride;
                vec acc[Q];
#pragma GCC unroll 4
                for (int i = 0; i < Q; ++i) acc[i] = Simd::zero();
                for (int c = 0; c < whole; c += W) {
                    const vec x = load(key + c);
#pragma GCC unroll 4
                    for (int i = 0; i < Q; ++i) acc[i] = Simd::fma(load(q[i] + c), x, acc[i]);
                }
#pragma GCC unroll 4
                for (int i = 0; i < Q; ++i) {
                    sums[i][e] = acc[i];
                    rest[i][e] = 0;
                    for (int c = whole; c < d; ++c) rest[i][e] += to_float(q[i][c]) * to_float(key[c]);
                }
            }
            for (int i = 0; i < Q; ++i) {
                for (int e = n; e < W; ++e) {
                    sums[i][e] = Simd::zero();
                    rest[i][e] = kNothing;
                }
                Simd::store(weights[i] + j, Simd::add(Simd::sum_each(sums[i]), Simd::load(rest[i])));
            }
        }
    }

    /// Logits to 2^(c logit - largest).
    static void weigh(float* weights, int64_t count, float c, const float* cardinality, float& largest, float& total) {
        vec maximum = Simd::set1(kNothing);
        for (int64_t j = 0; j < count; j += W) maximum = Simd::max(maximum, Simd::load(weights + j));
        largest = Simd::maximum(maximum) * c;
        const vec factor = Simd::set1(c), reference = Simd::set1(largest);
        vec sum = Simd::zero();
        for (int64_t j = 0; j < count; j += W) {
            const vec p = Simd::exp2(Simd::sub(Simd::mul(Simd::load(weights + j), factor), reference));
            Simd::store(weights + j, p);
            if (cardinality == nullptr) sum = Simd::add(sum, p);
        }
        total = Simd::sum(sum);
        if (cardinality != nullptr)
            for (int64_t j = 0; j < count; ++j) total += weights[j] * cardinality[j];
    }

    template <class T, int Q, int V>
    static void add_values(const float (&weights)[Q][kDecodeSegment], const T* v, int64_t stride, int64_t count,
                           float* out, int d) {
        vec acc[Q][V];
        for (int i = 0; i < Q; ++i)
            for (int c = 0; c < V; ++c) acc[i][c] = Simd::zero();
        for (int64_t j = 0; j < count; ++j) {
            vec x[V];
#pragma GCC unroll 4
            for (int c = 0; c < V; ++c) x[c] = load(v + j * stride + c * W);
#pragma GCC unroll 4
            for (int i = 0; i < Q; ++i) {
                const vec p = Simd::set1(weights[i][j]);
#pragma GCC unroll 4
                for (int c = 0; c < V; ++c) acc[i][c] = Simd::fma(p, x[c], acc[i][c]);
            }
        }
        for (int i = 0; i < Q; ++i)
            for (int c = 0; c < V; ++c) Simd::store(out + i * d + c * W, acc[i][c]);
    }
};

}  // namespace kvscope::kernels
