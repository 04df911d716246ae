// A NaN in a kernel's input reaches its output at every instruction set, so that a damaged weight never becomes a
// plausible answer.

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/attention_decode.h"
#include "kernels/attention_prefill.h"
#include "kernels/divergence.h"
#include "kernels/larger.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/score_pooling.h"
#include "kernels/softmax.h"
#include "kernels/swiglu.h"
#include "kernels/window_attention.h"
#include "tests/kernels/kernel_case.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

template <class T>
bool is_nan(T value) {
    return std::isnan(to_float(value));
}

/// Whether exactly the given rows of `width` values are all NaN, and all other rows have none.
template <class T, class Expected>
void check_rows(const std::vector<T>& values, int64_t width, const Expected& expected) {
    for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
        CAPTURE(i / width, i % width);
        REQUIRE(is_nan(values[static_cast<size_t>(i)]) == expected(i / width));
    }
}

/// Attention of n tokens with 2 query heads on one KV head.
template <class T>
struct Attention {
    static constexpr int64_t n = 300, d = 16;
    std::vector<T> q = random_values<T>(n * 2 * d, 1), k = random_values<T>(n * d, 2), v = random_values<T>(n * d, 3),
                   out = std::vector<T>(n * 2 * d);

    void prefill(double* sums = nullptr) {
        PrefillAttention p;
        p.dtype = dtype_of<T>;
        p.n_heads = 2;
        p.n_kv_heads = 1;
        p.head_dim = d;
        p.scale = 0.25f;
        p.n_queries = n;
        p.q = q.data();
        p.out = out.data();
        p.q_token_stride = p.out_token_stride = 2 * d;
        p.k = k.data();
        p.v = v.data();
        p.kv_head_stride = n * d;
        p.column_sums = sums;
        p.column_stride = n;
        attention_prefill(p);
    }

    /// For the last token.
    std::vector<T> decode(std::vector<float>& weights) {
        std::vector<T> last(2 * d);
        weights.assign(2 * n, 0.0f);
        DecodeRow row;
        row.q = q.data() + (n - 1) * 2 * d;
        row.q_stride = row.out_stride = row.k_stride = row.v_stride = d;
        row.n_queries = 2;
        row.k = k.data();
        row.v = v.data();
        row.n_entries = n;
        row.out = last.data();
        row.attention = weights.data();
        attention_decode({&row, 1}, d, dtype_of<T>, 0.25f);
        return last;
    }
};

/// Window attention of the last queries with one head each.
struct Window {
    static constexpr int64_t n = 100, d = 8, w = 20;
    std::vector<float> queries = random_values<float>(w * d, 1), keys = random_values<float>(n * d, 2);
    std::vector<float> mean = std::vector<float>(n);

    WindowAttention problem() {
        WindowAttention p;
        p.n_heads = p.n_kv_heads = 1;
        p.head_dim = d;
        p.window = w;
        p.n_tokens = n;
        p.queries = queries.data();
        p.keys = keys.data();
        p.keys_dtype = DType::f32;
        p.key_head_stride = n * d;
        p.mean = mean.data();
        return p;
    }
};

}  // namespace

TEMPLATE_TEST_CASE("a NaN in a key, a query or a value reaches all attention that sees it", "", float, bf16) {
    constexpr int64_t d = Attention<TestType>::d, n = Attention<TestType>::n;
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        CAPTURE(name_of(level));
        for (const int64_t token : {0, 3, 150, 255, 256, 299}) {
            CAPTURE(token);
            std::vector<float> weights;
            Attention<TestType> key;
            key.k[static_cast<size_t>(token * d + 5)] = from_float<TestType>(quiet_nan);
            std::vector<double> sums(2 * n);
            key.prefill(sums.data());
            check_rows(key.out, 2 * d, [&](int64_t row) { return row >= token; });
            for (const double sum : sums) REQUIRE(std::isnan(sum));  // the last query sees all keys
            check_rows(key.decode(weights), 2 * d, [](int64_t) { return true; });
            for (const float weight : weights) REQUIRE(std::isnan(weight));

            Attention<TestType> query;
            query.q[static_cast<size_t>(token * 2 * d + 5)] = from_float<TestType>(quiet_nan);  // of the first head
            query.prefill();
            check_rows(query.out, d, [&](int64_t row) { return row == 2 * token; });

            Attention<TestType> value;
            value.v[static_cast<size_t>(token * d + 5)] = from_float<TestType>(quiet_nan);
            value.prefill();
            for (int64_t row = 2 * token; row < 2 * n; ++row)
                REQUIRE(is_nan(value.out[static_cast<size_t>(row * d + 5)]));
            CHECK(is_nan(value.decode(weights)[5]));
        }
    }
}

TEST_CASE("a NaN in a key or a query reaches the attention of the last queries and its peaks") {
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        CAPTURE(name_of(level));
        for (const int64_t token : {0, 40, 90, 99}) {
            CAPTURE(token);
            Window key, query;
            key.keys[static_cast<size_t>(token * Window::d + 3)] = quiet_nan;
            query.queries[static_cast<size_t>(token % Window::w * Window::d + 3)] = quiet_nan;
            for (const auto attention : {&window_attention, &window_attention_head_max}) {
                attention(key.problem());
                for (const float mean : key.mean) REQUIRE(std::isnan(mean));
                attention(query.problem());
                const size_t sees = Window::n - Window::w + token % Window::w + 1;
                for (size_t j = 0; j < sees; ++j) REQUIRE(std::isnan(query.mean[j]));
            }
        }
    }
}

TEMPLATE_TEST_CASE("a NaN in a row reaches its norm, rotation and activation, and no other row's", "", float, bf16) {
    const int64_t rows = 5, dim = 70;
    const auto dtype = dtype_of<TestType>;
    const std::vector<float> weight(dim, 1.0f), cosines(rows * dim / 2, 0.6f), sines(cosines.size(), 0.8f);
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        CAPTURE(name_of(level));
        for (const size_t place : {0, 17, 40, 69}) {
            CAPTURE(place);
            const auto of_row_2 = [](int64_t row) { return row == 2; };
            auto x = random_values<TestType>(rows * dim, 1);
            x[2 * dim + place] = from_float<TestType>(quiet_nan);
            std::vector<TestType> out(x.size());
            rms_norm({.n_rows = rows,
                      .dim = dim,
                      .eps = 1e-5f,
                      .x = x.data(),
                      .x_dtype = dtype,
                      .weight = weight.data(),
                      .out = out.data(),
                      .out_dtype = dtype});
            check_rows(out, dim, of_row_2);

            std::vector<float> residual(x.size(), 1.0f);
            add_rms_norm({rows, dim, 1e-5f, residual.data(), x.data(), dtype, weight.data(), out.data(), dtype});
            check_rows(out, dim, of_row_2);
            CHECK(std::isnan(residual[2 * dim + place]));

            const auto other = random_values<TestType>(rows * dim, 2);
            swiglu({dtype, rows, dim, x.data(), other.data(), dim, out.data(), dim});
            CHECK(is_nan(out[2 * dim + place]));
            swiglu({dtype, rows, dim, other.data(), x.data(), dim, out.data(), dim});
            CHECK(is_nan(out[2 * dim + place]));

            rope({dtype, rows, 1, static_cast<int>(dim), x.data(), dim, 0, cosines.data(), sines.data()});
            CHECK(is_nan(x[2 * dim + place]));
            CHECK(is_nan(x[2 * dim + (place + dim / 2) % dim]));
            CHECK(std::accumulate(x.begin(), x.end(), 0, [](int n, TestType e) { return n + is_nan(e); }) == 2);
        }
    }
}

TEST_CASE("pooling, softmax and larger() keep a NaN") {
    CHECK(std::isnan(larger(quiet_nan, 1.0f)));
    CHECK(std::isnan(larger(1.0f, quiet_nan)));
    CHECK(larger(-1.0f, 2.0f) == 2.0f);
    CHECK(larger(3.0f, 2.0f) == 3.0f);
    for (const auto kind : {Pooling::max, Pooling::avg}) {
        for (const int64_t place : {0, 9, 10, 29}) {
            auto in = random_values<float>(30, 1);
            in[static_cast<size_t>(place)] = quiet_nan;
            std::vector<float> out(30);
            pool(kind, in.data(), 30, 7, out.data());
            check_rows(out, 1, [&](int64_t i) { return std::abs(i - place) <= 3; });
        }
    }
    for (const size_t place : {0, 2}) {
        std::vector<double> values{1.0, 2.0, 3.0};
        values[place] = std::numeric_limits<double>::quiet_NaN();
        softmax(values.data(), 3, 1.0, values.data());
        for (const double value : values) CHECK(std::isnan(value));
    }
}

TEST_CASE("a NaN in a distribution reaches its row and column of the divergences") {
    for (const auto level : levels()) {
        const ForcedSimdLevel forced(level);
        CAPTURE(name_of(level));
        for (const int64_t n : {3, 40}) {
            std::vector<double> rows(static_cast<size_t>(3 * n), 1.0 / static_cast<double>(n));
            rows[static_cast<size_t>(n + 2)] = std::numeric_limits<double>::quiet_NaN();
            for (const auto matrix : {jsd_matrix, kl_matrix, cross_entropy_matrix}) {
                std::vector<double> out(9);
                matrix(rows.data(), 3, n, out.data());
                for (size_t i = 0; i < 9; ++i) {
                    CAPTURE(i);
                    CHECK(std::isnan(out[i]) == (i / 3 == 1 || i % 3 == 1));
                }
            }
        }
    }
}
