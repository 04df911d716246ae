#include "kernels/divergence.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "kernels/cpu_features.h"
#include "kernels/softmax.h"

using namespace kvscope::kernels;

namespace {

using Matrix = std::vector<double>;

std::vector<SimdLevel> levels() {
    std::vector<SimdLevel> all;
    for (SimdLevel level : {SimdLevel::generic, SimdLevel::avx2, SimdLevel::avx512}) {
        if (level <= supported_simd_level()) all.push_back(level);
    }
    return all;
}

Matrix divergences(void (*matrix_of)(const double*, int64_t, int64_t, double*), const Matrix& rows, int64_t n_rows) {
    Matrix out(static_cast<size_t>(n_rows * n_rows));
    matrix_of(rows.data(), n_rows, static_cast<int64_t>(rows.size()) / n_rows, out.data());
    return out;
}

/// Computed in long double, term by term from the definition.
long double plain_kl(const double* p, const double* q, int64_t n) {
    long double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (p[i] > 0) sum += p[i] * std::log(static_cast<long double>(p[i]) / q[i]);
    }
    return sum;
}

double plain_jsd(const double* p, const double* q, int64_t n) {
    Matrix m(static_cast<size_t>(n));
    long double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        const long double mean = (static_cast<long double>(p[i]) + q[i]) / 2;
        if (p[i] > 0) sum += p[i] * std::log(p[i] / mean) / 2;
        if (q[i] > 0) sum += q[i] * std::log(q[i] / mean) / 2;
    }
    return static_cast<double>(sum);
}

/// Distributions of three kinds: peaked with exact zeros, ordinary, nearly uniform.
Matrix random_rows(int kind, int64_t n_rows, int64_t n, std::mt19937& random) {
    Matrix rows;
    for (int64_t r = 0; r < n_rows; ++r) {
        Matrix row(static_cast<size_t>(n));
        for (double& value : row)
            value = std::normal_distribution<double>(0, kind == 0 ? 300 : kind == 1 ? 2 : 1e-4)(random);
        softmax(row.data(), n, 1.0, row.data());
        rows.insert(rows.end(), row.begin(), row.end());
    }
    return rows;
}

}  // namespace

TEST_CASE("divergences by hand", "[divergence]") {
    const double ln2 = std::numbers::ln2;
    const Matrix apart{1, 0, 0, 1};
    CHECK(divergences(jsd_matrix, apart, 2) == Matrix{0, ln2, ln2, 0});
    const Matrix halves{0.5, 0.5, 1, 0};
    const Matrix jsd = divergences(jsd_matrix, halves, 2);
    CHECK(jsd[1] == Approx(0.25 * std::log(2.0 / 3) + 0.25 * ln2 + 0.5 * std::log(4.0 / 3)).epsilon(1e-14));
    const Matrix kl = divergences(kl_matrix, halves, 2);
    CHECK(kl[2] == Approx(ln2).epsilon(1e-14));
    CHECK(kl[1] == Approx(std::log(0.5) - 0.5 * std::log(2.2250738585072014e-308)).epsilon(1e-12));
    CHECK(kl[0] == 0.0);
    const Matrix entropy = divergences(cross_entropy_matrix, halves, 2);
    CHECK(entropy[0] == Approx(ln2).epsilon(1e-14));
    CHECK(entropy[2] == Approx(ln2).epsilon(1e-14));
    CHECK(entropy[3] == 0.0);
}

TEST_CASE("divergences equal their definitions at every SIMD level", "[divergence]") {
    for (SimdLevel level : levels()) {
        const ForcedSimdLevel forced(level);
        std::mt19937 random(11);
        for (int kind = 0; kind < 3; ++kind) {
            for (int64_t n : {1, 2, 3, 7, 64, 1001}) {
                const int64_t n_rows = 4;
                const Matrix rows = random_rows(kind, n_rows, n, random);
                const Matrix jsd = divergences(jsd_matrix, rows, n_rows);
                const Matrix kl = divergences(kl_matrix, rows, n_rows);
                const Matrix entropy = divergences(cross_entropy_matrix, rows, n_rows);
                CAPTURE(name_of(level), kind, n);
                for (int64_t i = 0; i < n_rows; ++i) {
                    for (int64_t j = 0; j < n_rows; ++j) {
                        const double *p = rows.data() + i * n, *q = rows.data() + j * n;
                        const double found = jsd[i * n_rows + j];
                        // Nearly equal rows keep nine digits, although their JSD is 1e-9.
                        CHECK(found == Approx(plain_jsd(p, q, n)).epsilon(1e-9).margin(1e-16));
                        CHECK(found == jsd[j * n_rows + i]);
                        CHECK(found >= 0.0);
                        CHECK(found <= std::numbers::ln2);
                        if (i == j) CHECK(found == 0.0);
                        CHECK(kl[i * n_rows + j] >= 0.0);
                        if (kind > 0) {
                            CHECK(kl[i * n_rows + j] ==
                                  Approx(static_cast<double>(plain_kl(p, q, n))).epsilon(1e-7).margin(1e-14));
                            const double h = static_cast<double>(plain_kl(p, p, n));
                            CHECK(h == 0.0);
                            // CE(p, q) = H(p) + KL(p || q)
                            CHECK(entropy[i * n_rows + j] ==
                                  Approx(entropy[i * n_rows + i] + kl[i * n_rows + j]).epsilon(1e-12).margin(1e-14));
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("JSD of weights renormalizes each row and marks rows that are not distributions", "[divergence]") {
    const std::vector<float> weights{2, 2, 99, 0, 8, 99, 0, 0, 99, NAN, 1, 99};  // row_stride 3, n = 2
    std::vector<float> out(16);
    jsd_matrix_of_weights(weights.data(), 4, 2, 3, out.data());
    const double expected = plain_jsd(Matrix{0.5, 0.5}.data(), Matrix{0, 1}.data(), 2);
    CHECK(out[1] == Approx(expected));
    CHECK(out[0] == 0.0f);
    for (int i = 0; i < 4; ++i) {
        CHECK(std::isnan(out[i * 4 + 2]));
        CHECK(std::isnan(out[3 * 4 + i]));
    }
}

TEST_CASE("softmax with a temperature", "[divergence]") {
    Matrix values{0.0, std::log(2.0), 1000.0 - 1000.0};
    softmax(values.data(), 3, 1.0, values.data());
    CHECK(values[1] == Approx(0.5));
    CHECK(values[0] == Approx(0.25));
    Matrix large{1e6, 1e6 - 2 * std::log(3.0)};
    softmax(large.data(), 2, 2.0, large.data());
    CHECK(large[0] == Approx(0.75));
}
