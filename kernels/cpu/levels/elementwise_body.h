#pragma once

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/level_kernels.h"

namespace kvscope::kernels {

template <class Simd>
struct ElementwiseBody {
    using vec = typename Simd::vec;
    static constexpr int lanes = Simd::lanes;

    static void rms_norm(const RmsNorm& problem, int64_t row_begin, int64_t row_end) {
        with_types(problem.x_dtype, problem.out_dtype, [&](auto x_type, auto out_type) {
            const auto* x = static_cast<const decltype(x_type)*>(problem.x);
            auto* out = static_cast<decltype(out_type)*>(problem.out);
            const int64_t x_stride = problem.x_stride ? problem.x_stride : problem.heads * problem.dim;
            const int64_t out_stride = problem.out_stride ? problem.out_stride : problem.heads * problem.dim;
            for (int64_t row = row_begin; row < row_end; ++row)
                for (int64_t head = 0; head < problem.heads; ++head)
                    normalise(x + row * x_stride + head * problem.dim, problem.weight, problem.eps, problem.dim,
                              out + row * out_stride + head * problem.dim);
        });
    }

    static void add_rms_norm(const AddRmsNorm& problem, int64_t row_begin, int64_t row_end) {
        with_types(problem.delta_dtype, problem.out_dtype, [&](auto delta_type, auto out_type) {
            const auto* delta = static_cast<const decltype(delta_type)*>(problem.delta);
            auto* out = static_cast<decltype(out_type)*>(problem.out);
            const int64_t dim = problem.dim;
            for (int64_t row = row_begin; row < row_end; ++row) {
                float* residual = problem.residual + row * dim;
                if (delta != nullptr) {
                    int64_t c = 0;
                    for (; c + lanes <= dim; c += lanes)
                        Simd::store(residual + c, Simd::add(Simd::load(residual + c), load(delta + row * dim + c)));
                    for (; c < dim; ++c) residual[c] += to_float(delta[row * dim + c]);
                }
                if (out != nullptr) normalise(residual, problem.weight, problem.eps, dim, out + row * dim);
            }
        });
    }

    static void rope(const Rope& problem, int64_t token_begin, int64_t token_end) {
        if (problem.dtype == DType::f32)
            rotate(static_cast<float*>(problem.x), problem, token_begin, token_end);
        else
            rotate(static_cast<bf16*>(problem.x), problem, token_begin, token_end);
    }

    static void swiglu(const SwiGlu& problem, int64_t row_begin, int64_t row_end) {
        if (problem.dtype == DType::f32)
            activate<float>(problem, row_begin, row_end);
        else
            activate<bf16>(problem, row_begin, row_end);
    }

    static void log_softmax(const LogSoftmax& problem, int64_t row_begin, int64_t row_end) {
        for (int64_t row = row_begin; row < row_end; ++row)
            logarithms(problem.in + row * problem.n, problem.n, problem.out + row * problem.n);
    }

    static void divergence_of_logs(const DivergenceOfLogs& problem, int64_t row_begin, int64_t row_end) {
        for (int64_t row = row_begin; row < row_end; ++row)
            problem.out[row] = divergence(problem.log_p + row * problem.n, problem.log_q + row * problem.n, problem.n);
    }

 private:
    static constexpr float log2_e = 1.4426950408889634f;
    static constexpr float finite_lowest = -1e30f;  ///< replaces minus infinity, which exp2() does not support

    /// Loads the next `lanes` of `left` values and replaces missing values by `filler`.
    [[nodiscard]] static vec some(const float* p, int64_t left, float filler) {
        if (left >= lanes) return Simd::load(p);
        float values[lanes];
        for (int i = 0; i < lanes; ++i) values[i] = i < left ? p[i] : filler;
        return Simd::load(values);
    }

    /// Returns the sum of term(c) for c = 0, lanes, 2 * lanes, ... below n, in f32 within
    /// 64 vectors and in f64 across them.
    template <class Term>
    [[nodiscard]] static double sum_of(int64_t n, const Term& term) {
        double total = 0;
        for (int64_t begin = 0; begin < n; begin += 64 * lanes) {
            const int64_t end = begin + 64 * lanes < n ? begin + 64 * lanes : n;
            vec sums[2] = {Simd::zero(), Simd::zero()};
            int64_t c = begin;
            for (; c + lanes < end; c += 2 * lanes) {
                sums[0] = Simd::add(sums[0], term(c));
                sums[1] = Simd::add(sums[1], term(c + lanes));
            }
            if (c < end) sums[0] = Simd::add(sums[0], term(c));
            total += static_cast<double>(Simd::sum(Simd::add(sums[0], sums[1])));
        }
        return total;
    }

    static void logarithms(const float* in, int64_t n, float* out) {
        vec most = Simd::set1(finite_lowest);
        for (int64_t c = 0; c < n; c += lanes) most = Simd::max(most, some(in + c, n - c, finite_lowest));
        const float largest = Simd::maximum(most);  // a NaN may be lost here, but not in the sum
        const vec largests = Simd::set1(largest), scale = Simd::set1(log2_e);
        const double total = sum_of(n, [&](int64_t c) {
            const vec x = Simd::max(Simd::set1(finite_lowest), some(in + c, n - c, finite_lowest));
            return Simd::exp2(Simd::mul(Simd::sub(x, largests), scale));
        });
        const auto log_total = static_cast<float>(__builtin_log(total));
        const vec logs = Simd::set1(log_total);
        int64_t c = 0;
        for (; c + lanes <= n; c += lanes)
            Simd::store(out + c, Simd::sub(Simd::sub(Simd::load(in + c), largests), logs));
        for (; c < n; ++c) out[c] = in[c] - largest - log_total;
    }

    [[nodiscard]] static float divergence(const float* log_p, const float* log_q, int64_t n) {
        const vec scale = Simd::set1(log2_e), lowest = Simd::set1(finite_lowest);
        return static_cast<float>(sum_of(n, [&](int64_t c) {
            // 0 ln 0 = 0 requires finite logarithms.
            const vec p = Simd::max(lowest, some(log_p + c, n - c, 0.0f));
            const vec q = Simd::max(lowest, some(log_q + c, n - c, 0.0f));
            return Simd::mul(Simd::exp2(Simd::mul(p, scale)), Simd::sub(p, q));
        }));
    }

    [[nodiscard]] static vec load(const float* p) { return Simd::load(p); }
    [[nodiscard]] static vec load(const bf16* p) { return Simd::load_bf16(p); }
    static void store(float* p, vec x) { Simd::store(p, x); }
    static void store(bf16* p, vec x) { Simd::store_bf16(p, x); }

    template <class Call>
    static void with_types(DType first, DType second, const Call& call) {
        if (first == DType::f32 && second == DType::f32) call(float{}, float{});
        if (first == DType::f32 && second == DType::bf16) call(float{}, bf16{});
        if (first == DType::bf16 && second == DType::f32) call(bf16{}, float{});
        if (first == DType::bf16 && second == DType::bf16) call(bf16{}, bf16{});
    }

    template <class X, class Out>
    static void normalise(const X* x, const float* weight, float eps, int64_t dim, Out* out) {
        vec sums[4] = {Simd::zero(), Simd::zero(), Simd::zero(), Simd::zero()};
        int64_t c = 0;
        for (; c + 4 * lanes <= dim; c += 4 * lanes)
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                const vec value = load(x + c + i * lanes);
                sums[i] = Simd::fma(value, value, sums[i]);
            }
        for (; c + lanes <= dim; c += lanes) {
            const vec value = load(x + c);
            sums[0] = Simd::fma(value, value, sums[0]);
        }
        float sum = Simd::sum(Simd::add(Simd::add(sums[0], sums[1]), Simd::add(sums[2], sums[3])));
        for (; c < dim; ++c) sum += to_float(x[c]) * to_float(x[c]);

        const float factor = 1.0f / __builtin_sqrtf(sum / static_cast<float>(dim) + eps);
        const vec factors = Simd::set1(factor);
        for (c = 0; c + lanes <= dim; c += lanes)
            store(out + c, Simd::mul(Simd::mul(load(x + c), factors), Simd::load(weight + c)));
        for (; c < dim; ++c) out[c] = from_float<Out>(to_float(x[c]) * factor * weight[c]);
    }

    template <class T>
    static void rotate(T* x, const Rope& problem, int64_t token_begin, int64_t token_end) {
        const int half = problem.head_dim / 2;
        const int64_t head_stride = problem.head_stride ? problem.head_stride : problem.head_dim;
        for (int64_t token = token_begin; token < token_end; ++token) {
            const float* cosines = problem.cosines + token * half;
            const float* sines = problem.sines + token * half;
            for (int head = 0; head < problem.n_heads; ++head) {
                T* low = x + token * problem.token_stride + head * head_stride;
                T* high = low + half;
                int c = 0;
                for (; c + lanes <= half; c += lanes) {
                    const vec a = load(low + c), b = load(high + c);
                    const vec cosine = Simd::load(cosines + c), sine = Simd::load(sines + c);
                    store(low + c, Simd::sub(Simd::mul(a, cosine), Simd::mul(b, sine)));
                    store(high + c, Simd::add(Simd::mul(b, cosine), Simd::mul(a, sine)));
                }
                for (; c < half; ++c) {
                    const float a = to_float(low[c]), b = to_float(high[c]);
                    low[c] = from_float<T>(a * cosines[c] - b * sines[c]);
                    high[c] = from_float<T>(b * cosines[c] + a * sines[c]);
                }
            }
        }
    }

    /// Computes silu(x) = x / (1 + 2^(-x log2 e)) times `up`. Limits the exponent to keep the power finite in f32.
    [[nodiscard]] static vec silu_times(vec x, vec up) {
        const vec exponent = Simd::max(Simd::mul(x, Simd::set1(1.4426950408889634f)), Simd::set1(-126.0f));
        const vec one = Simd::set1(1.0f);
        return Simd::mul(Simd::div(x, Simd::add(one, Simd::exp2(Simd::sub(Simd::zero(), exponent)))), up);
    }

    template <class T>
    static void activate(const SwiGlu& problem, int64_t row_begin, int64_t row_end) {
        const int64_t dim = problem.dim;
        const int64_t in_stride = problem.in_stride ? problem.in_stride : dim;
        const int64_t out_stride = problem.out_stride ? problem.out_stride : dim;
        for (int64_t row = row_begin; row < row_end; ++row) {
            const T* gate = static_cast<const T*>(problem.gate) + row * in_stride;
            const T* up = static_cast<const T*>(problem.up) + row * in_stride;
            T* out = static_cast<T*>(problem.out) + row * out_stride;
            int64_t c = 0;
            for (; c + lanes <= dim; c += lanes) store(out + c, silu_times(load(gate + c), load(up + c)));
            if (c < dim) {
                T gate_rest[lanes] = {}, up_rest[lanes] = {}, out_rest[lanes];
                for (int64_t i = 0; i < dim - c; ++i) {
                    gate_rest[i] = gate[c + i];
                    up_rest[i] = up[c + i];
                }
                store(out_rest, silu_times(load(gate_rest), load(up_rest)));
                for (int64_t i = 0; i < dim - c; ++i) out[c + i] = out_rest[i];
            }
        }
    }
};

}  // namespace kvscope::kernels
