#include "kernels/divergence.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "kernels/cpu/targets.h"
#include "kernels/cpu_features.h"
#include "kernels/threads/team.h"

namespace kvscope::kernels {

namespace {

constexpr double smallest_normal = std::numeric_limits<double>::min();
constexpr int64_t least_parallel_work = int64_t{1} << 16;  ///< fewer elements are not worth several threads

/// Returns condition ? a : b without a branch, because the loops below vectorize only without branches.
KVSCOPE_INLINE double blend(bool condition, double a, double b) {
    const uint64_t mask = uint64_t{0} - static_cast<uint64_t>(condition);
    return std::bit_cast<double>((std::bit_cast<uint64_t>(a) & mask) | (std::bit_cast<uint64_t>(b) & ~mask));
}

/// Natural logarithm of a normal x > 0 to about 1 ulp: x = 2^e m, ln m = 2 atanh((m - 1) / (m + 1)). Finite for x = 0.
KVSCOPE_INLINE double log_of_normal(double x) {
    const uint64_t bits = std::bit_cast<uint64_t>(x);
    constexpr uint64_t root_half = std::bit_cast<uint64_t>(std::numbers::sqrt2 / 2);
    constexpr uint64_t exponent_bias = uint64_t{1024} << 52;
    constexpr uint64_t exponent_mask = uint64_t{0xfff} << 52;
    const uint64_t shifted = bits - root_half + exponent_bias;  // the upper bits are e + 1024
    // Converts e to double through the mantissa of 2^52, which vectorizes on every level.
    const double e = std::bit_cast<double>((shifted >> 52) | std::bit_cast<uint64_t>(0x1p52)) - (0x1p52 + 1024.0);
    const double m = std::bit_cast<double>(bits - ((shifted & exponent_mask) - exponent_bias));
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double series = 1.0 / 21;
    series = series * z + 1.0 / 19;
    series = series * z + 1.0 / 17;
    series = series * z + 1.0 / 15;
    series = series * z + 1.0 / 13;
    series = series * z + 1.0 / 11;
    series = series * z + 1.0 / 9;
    series = series * z + 1.0 / 7;
    series = series * z + 1.0 / 5;
    series = series * z + 1.0 / 3;
    constexpr double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;
    return e * ln2_high + (2.0 * s + (2.0 * s * z * series + e * ln2_low));
}

/// p ln(p/m) + q ln(q/m) >= 0, m = (p + q) / 2. With t = (p - q) / (p + q) this is m ((1 + t) ln(1 + t) + (1 - t) ln(1
/// - t)) = 2 m sum_k t^2k / (2k (2k - 1)). The series is used for small t, where the logarithms would cancel.
KVSCOPE_INLINE double jsd_term(double p, double q, double log_p, double log_q) {
    const double sum = p + q;
    const double m = 0.5 * sum;
    const double t = (p - q) / (sum + smallest_normal);  // 0 if both are 0
    const double z = t * t;
    double series = 1.0 / (26 * 25);
    series = series * z + 1.0 / (24 * 23);
    series = series * z + 1.0 / (22 * 21);
    series = series * z + 1.0 / (20 * 19);
    series = series * z + 1.0 / (18 * 17);
    series = series * z + 1.0 / (16 * 15);
    series = series * z + 1.0 / (14 * 13);
    series = series * z + 1.0 / (12 * 11);
    series = series * z + 1.0 / (10 * 9);
    series = series * z + 1.0 / (8 * 7);
    series = series * z + 1.0 / (6 * 5);
    series = series * z + 1.0 / (4 * 3);
    series = series * z + 1.0 / 2;
    const double near = sum * z * series;
    const double log_m = log_of_normal(m);
    const double apart = p * (log_p - log_m) + q * (log_q - log_m);
    return blend(std::bit_cast<uint64_t>(z) < std::bit_cast<uint64_t>(0.0625), near, apart);
}

KVSCOPE_INLINE double jsd_body(const double* p, const double* q, const double* log_p, const double* log_q, int64_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += jsd_term(p[i], q[i], log_p[i], log_q[i]);
    return 0.5 * sum;
}

KVSCOPE_INLINE double dot_body(const double* p, const double* a, int64_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += p[i] * a[i];
    return sum;
}

KVSCOPE_INLINE double difference_body(const double* p, const double* a, const double* b, int64_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += p[i] * (a[i] - b[i]);
    return sum;
}

KVSCOPE_INLINE void logs_body(const double* p, int64_t n, double of_zero, double* logs) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        // For NaN, log_of_normal() returns a number. The term p - p is then NaN; for other values it is 0.
        logs[i] = blend(std::bit_cast<uint64_t>(p[i]) != 0, log_of_normal(p[i]), of_zero) + (p[i] - p[i]);
    }
}

struct Loops {
    double (*jsd)(const double*, const double*, const double*, const double*, int64_t);
    double (*dot)(const double*, const double*, int64_t);
    double (*difference)(const double*, const double*, const double*, int64_t);
    void (*logs)(const double*, int64_t, double, double*);
};

#define KVSCOPE_LOOPS(name, target)                                                                           \
    target double jsd_##name(const double* p, const double* q, const double* a, const double* b, int64_t n) { \
        return jsd_body(p, q, a, b, n);                                                                       \
    }                                                                                                         \
    target double dot_##name(const double* p, const double* a, int64_t n) { return dot_body(p, a, n); }       \
    target double difference_##name(const double* p, const double* a, const double* b, int64_t n) {           \
        return difference_body(p, a, b, n);                                                                   \
    }                                                                                                         \
    target void logs_##name(const double* p, int64_t n, double of_zero, double* logs) {                       \
        logs_body(p, n, of_zero, logs);                                                                       \
    }                                                                                                         \
    constexpr Loops loops_##name{jsd_##name, dot_##name, difference_##name, logs_##name};

KVSCOPE_LOOPS(generic, )
#ifdef KVSCOPE_AVX2
KVSCOPE_LOOPS(avx2, KVSCOPE_AVX2)
KVSCOPE_LOOPS(avx512, KVSCOPE_AVX512)
#endif
#undef KVSCOPE_LOOPS

const Loops& loops() {
#ifdef KVSCOPE_AVX2
    if (simd_level() >= SimdLevel::avx512) return loops_avx512;
    if (simd_level() >= SimdLevel::avx2) return loops_avx2;
#endif
    return loops_generic;
}

/// Rows with subnormal values replaced by 0, and their logarithms.
struct Rows {
    int64_t n;
    std::vector<double> p, logs;

    Rows(const double* distributions, int64_t n_rows, int64_t length, double log_of_zero)
        : n(length), p(distributions, distributions + n_rows * length), logs(p.size()) {
        for (double& value : p) value = value < smallest_normal ? 0.0 : value;  // NaN stays NaN
        loops().logs(p.data(), n_rows * n, log_of_zero, logs.data());
    }
    const double* row(int64_t i) const { return p.data() + i * n; }
    const double* log_row(int64_t i) const { return logs.data() + i * n; }
};

}  // namespace

void jsd_matrix(const double* distributions, int64_t n_rows, int64_t n, double* out) {
    const Rows rows(distributions, n_rows, n, 0.0);
    const Loops& loop = loops();
    const int n_threads = n_rows * n_rows / 2 * n > least_parallel_work ? threads() : 1;
    const auto divergences_of = [&](int64_t i) {
        out[i * n_rows + i] = loop.difference(rows.row(i), rows.log_row(i), rows.log_row(i), n);  // 0 or NaN
        for (int64_t j = i + 1; j < n_rows; ++j) {
            const double sum = loop.jsd(rows.row(i), rows.row(j), rows.log_row(i), rows.log_row(j), n);
            out[i * n_rows + j] = out[j * n_rows + i] = std::clamp(sum, 0.0, std::numbers::ln2);
        }
    };
    over_parts(n_threads, n_rows, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) divergences_of(i);
    });
}

void kl_matrix(const double* distributions, int64_t n_rows, int64_t n, double* out) {
    const Rows rows(distributions, n_rows, n, std::log(smallest_normal));
    const Loops& loop = loops();
    for (int64_t i = 0; i < n_rows; ++i) {
        for (int64_t j = 0; j < n_rows; ++j) {
            const double sum = loop.difference(rows.row(i), rows.log_row(i), rows.log_row(j), n);
            out[i * n_rows + j] = std::max(sum, 0.0);
        }
    }
}

void cross_entropy_matrix(const double* distributions, int64_t n_rows, int64_t n, double* out) {
    const Rows rows(distributions, n_rows, n, std::log(smallest_normal));
    const Loops& loop = loops();
    for (int64_t i = 0; i < n_rows; ++i) {
        for (int64_t j = 0; j < n_rows; ++j) out[i * n_rows + j] = -loop.dot(rows.row(i), rows.log_row(j), n);
    }
}

void jsd_matrix_of_weights(const float* weights, int64_t n_rows, int64_t n, int64_t row_stride, float* out) {
    std::vector<double> distributions(static_cast<size_t>(n_rows * n));
    std::vector<bool> is_distribution(static_cast<size_t>(n_rows));
    for (int64_t i = 0; i < n_rows; ++i) {
        double sum = 0.0;
        for (int64_t j = 0; j < n; ++j) sum += weights[i * row_stride + j];
        is_distribution[i] = sum > 0.0 && std::isfinite(sum);
        for (int64_t j = 0; j < n && is_distribution[i]; ++j)
            distributions[i * n + j] = weights[i * row_stride + j] / sum;
    }
    std::vector<double> matrix(static_cast<size_t>(n_rows * n_rows));
    jsd_matrix(distributions.data(), n_rows, n, matrix.data());
    for (int64_t i = 0; i < n_rows; ++i) {
        for (int64_t j = 0; j < n_rows; ++j) {
            out[i * n_rows + j] = is_distribution[i] && is_distribution[j] ? static_cast<float>(matrix[i * n_rows + j])
                                                                           : std::numeric_limits<float>::quiet_NaN();
        }
    }
}

}  // namespace kvscope::kernels
