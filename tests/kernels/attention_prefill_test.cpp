#include "kernels/attention_prefill.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/threads/team.h"
#include "tests/kernels/kernel_case.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

struct Sizes {
    int n_heads, n_kv_heads, head_dim;
    int64_t n_tokens;
    int64_t sliding_window = 0;
};

std::ostream& operator<<(std::ostream& out, const Sizes& s) {
    return out << "H=" << s.n_heads << " G=" << s.n_kv_heads << " d=" << s.head_dim << " N=" << s.n_tokens
               << " sliding_window=" << s.sliding_window;
}

/// A whole prompt and the result of a plain double loop.
template <class T>
struct Case {
    Sizes sizes;
    float scale;
    std::vector<T> q, k, v;
    std::vector<int64_t> first_keys;  ///< replaces the sliding window unless empty
    std::vector<float> cardinality;   ///< unless empty, n of each entry

    explicit Case(const Sizes& s, float deviation = 1.0f)
        : sizes(s),
          scale(1.0f / std::sqrt(static_cast<float>(s.head_dim))),
          q(random_values<T>(static_cast<size_t>(s.n_tokens * s.n_heads * s.head_dim), 1, deviation)),
          k(random_values<T>(static_cast<size_t>(s.n_tokens * s.n_kv_heads * s.head_dim), 2, deviation)),
          v(random_values<T>(static_cast<size_t>(s.n_tokens * s.n_kv_heads * s.head_dim), 3)) {}

    int64_t width() const { return int64_t{sizes.n_heads} * sizes.head_dim; }

    PrefillAttention problem(int64_t begin, int64_t end, std::vector<T>& out) const {
        PrefillAttention p;
        p.dtype = dtype_of<T>;
        p.n_heads = sizes.n_heads;
        p.n_kv_heads = sizes.n_kv_heads;
        p.head_dim = sizes.head_dim;
        p.scale = scale;
        p.q_begin = begin;
        p.n_queries = end - begin;
        p.sliding_window = first_keys.empty() ? sizes.sliding_window : 0;
        p.first_keys = first_keys.empty() ? nullptr : first_keys.data() + begin;
        p.cardinality = cardinality.empty() ? nullptr : cardinality.data();
        p.q = q.data() + begin * width();
        p.q_token_stride = width();
        p.k = k.data();
        p.v = v.data();
        p.kv_head_stride = sizes.n_tokens * sizes.head_dim;
        p.out = out.data() + begin * width();
        p.out_token_stride = width();
        return p;
    }

    /// Computes the prompt in chunks.
    std::vector<T> run(int64_t chunk, std::vector<double>* column_sums = nullptr) const {
        std::vector<T> out(q.size(), from_float<T>(-77.0f));
        if (column_sums) column_sums->assign(static_cast<size_t>(sizes.n_heads * sizes.n_tokens), 0.0);
        for (int64_t begin = 0; begin < sizes.n_tokens; begin += chunk) {
            PrefillAttention p = problem(begin, std::min(begin + chunk, sizes.n_tokens), out);
            if (column_sums) {
                p.column_sums = column_sums->data();
                p.column_stride = sizes.n_tokens;
            }
            attention_prefill(p);
        }
        return out;
    }

    double count(int64_t key) const {
        return cardinality.empty() ? 1.0 : static_cast<double>(cardinality[static_cast<size_t>(key)]);
    }

    /// Returns exp(e) / sum n exp(e) of one query and the first key that it sees.
    std::vector<double> weights(int64_t i, int h, int64_t& first) const {
        const int64_t d = sizes.head_dim, row = h / (sizes.n_heads / sizes.n_kv_heads) * sizes.n_tokens;
        first = sizes.sliding_window ? std::max<int64_t>(0, i - sizes.sliding_window + 1) : 0;
        if (!first_keys.empty()) first = first_keys[static_cast<size_t>(i)];
        std::vector<double> w;
        for (int64_t j = first; j <= i; ++j) {
            double dot = 0;
            for (int64_t c = 0; c < d; ++c) dot += value(q, i * width() + h * d + c) * value(k, (row + j) * d + c);
            w.push_back(dot * static_cast<double>(scale));
        }
        const double largest = *std::max_element(w.begin(), w.end());
        double total = 0;
        for (size_t j = 0; j < w.size(); ++j) {
            w[j] = std::exp(w[j] - largest);
            total += count(first + static_cast<int64_t>(j)) * w[j];
        }
        for (double& x : w) x /= total;
        return w;
    }

    /// Compares every `step`-th query with the double loop. Compares column sums, too, if given (step 1).
    void check(const std::vector<T>& out, int64_t step, const std::vector<double>* column_sums = nullptr) const {
        // bf16: one rounding of the weights and one of the result. f32: some units in the last place.
        const double tolerance = sizeof(T) == 4 ? 5e-6 : 2 * rounding<T> + 5e-6;
        const int64_t d = sizes.head_dim, n = sizes.n_tokens;
        std::vector<double> sums(static_cast<size_t>(sizes.n_heads * n));
        double worst = 0;
        for (int h = 0; h < sizes.n_heads; ++h) {
            const int64_t row = h / (sizes.n_heads / sizes.n_kv_heads) * n;
            for (int64_t i = (n - 1) % step; i < n; i += step) {
                int64_t first = 0;
                const std::vector<double> w = weights(i, h, first);
                for (size_t j = 0; j < w.size(); ++j)
                    sums[static_cast<size_t>(h * n + first) + j] += count(first + static_cast<int64_t>(j)) * w[j];
                for (int64_t c = 0; c < d; ++c) {
                    double expected = 0, size = 0;
                    for (size_t j = 0; j < w.size(); ++j) {
                        const double term = w[j] * value(v, (row + first + static_cast<int64_t>(j)) * d + c);
                        expected += term;
                        size += std::abs(term);
                    }
                    const double error = std::abs(value(out, i * width() + h * d + c) - expected) / size;
                    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
                }
            }
        }
        CHECK(worst <= tolerance);
        if (column_sums == nullptr) return;
        double worst_sum = 0;
        for (size_t i = 0; i < sums.size(); ++i)
            worst_sum = std::max(worst_sum, std::abs((*column_sums)[i] - sums[i]) / sums[i]);
        CHECK(worst_sum <= 3e-6);
    }
};

const std::vector<Sizes> small_sizes = {
    {1, 1, 64, 1},      {2, 1, 16, 2},        {3, 1, 32, 3},      {4, 4, 64, 31},      {8, 1, 80, 32},
    {3, 3, 96, 33},     {9, 3, 64, 63},       {4, 1, 128, 65},    {5, 1, 16, 127},     {7, 1, 34, 129},
    {6, 3, 2, 50},      {16, 2, 64, 17},      {3, 1, 64, 300, 7}, {4, 2, 32, 300, 64}, {2, 2, 64, 513, 256},
    {9, 3, 64, 290, 1}, {8, 2, 256, 40, 300},
};

template <class T>
void check_small() {
    for (const SimdLevel level : levels())
        for (const Sizes& sizes : small_sizes) {
            INFO(name_of(level) << " " << name_of(dtype_of<T>) << " " << sizes);
            const ForcedSimdLevel forced(level);
            const Case<T> problem(sizes);
            std::vector<double> sums;
            problem.check(problem.run(sizes.n_tokens, &sums), 1, &sums);
        }
}

}  // namespace

TEST_CASE("attention_prefill equals a double loop, column sums included") {
    SECTION("f32") { check_small<float>(); }
    SECTION("bf16") { check_small<bf16>(); }
}

TEMPLATE_TEST_CASE("attention_prefill counts entries that stand for several tokens", "", float, bf16) {
    for (const SimdLevel level : levels())
        for (const Sizes& sizes : {Sizes{9, 3, 64, 70}, Sizes{4, 2, 32, 300}, Sizes{4, 2, 32, 300, 64},
                                   Sizes{2, 1, 34, 33}, Sizes{3, 1, 16, 1}}) {
            INFO(name_of(level) << " " << name_of(dtype_of<TestType>) << " " << sizes);
            const ForcedSimdLevel forced(level);
            Case<TestType> problem(sizes);
            std::vector<double> plain_sums, sums;
            const auto plain = problem.run(sizes.n_tokens, &plain_sums);
            // The same bits as without cardinalities if each is 1.
            problem.cardinality.assign(static_cast<size_t>(sizes.n_tokens), 1.0f);
            CHECK(std::memcmp(problem.run(sizes.n_tokens, &sums).data(), plain.data(),
                              plain.size() * sizeof(TestType)) == 0);
            CHECK(sums == plain_sums);
            for (size_t j = 0; j < problem.cardinality.size(); ++j)
                problem.cardinality[j] = j % 3 == 0 ? 1.0f : j % 3 == 1 ? 0.25f : static_cast<float>(7 + j);
            problem.check(problem.run(sizes.n_tokens, &sums), 1, &sums);
            problem.check(problem.run(19), 1);
        }
}

TEST_CASE("attention_prefill over several key panels") {
    for (const SimdLevel level : levels())
        for (const Sizes& sizes : {Sizes{3, 1, 64, 2047}, Sizes{4, 1, 64, 1025, 700}, Sizes{2, 2, 128, 769}}) {
            INFO(name_of(level) << " " << sizes);
            const ForcedSimdLevel forced(level);
            const Case<bf16> half(sizes);
            half.check(half.run(sizes.n_tokens), 61);
            const Case<float> full(sizes);
            full.check(full.run(sizes.n_tokens), 61);
        }
}

TEST_CASE("attention_prefill with logits of hundreds") {
    for (const SimdLevel level : levels()) {
        INFO(name_of(level));
        const ForcedSimdLevel forced(level);
        // Weights are 0 or 1: references rise repeatedly, and most weights vanish. f32 loses digits with such large
        // logits.
        const Case<float> problem({2, 1, 16, 600}, 20.0f);
        const auto out = problem.run(600);
        for (int64_t i = 0; i < 600; i += 37) {
            int64_t first = 0;
            const std::vector<double> w = problem.weights(i, 1, first);
            for (int64_t c = 0; c < 16; ++c) {
                double expected = 0;
                for (size_t j = 0; j < w.size(); ++j)
                    expected += w[j] * value(problem.v, static_cast<int64_t>(j) * 16 + c);
                CHECK(value(out, i * 32 + 16 + c) == Approx(expected).margin(1e-3));
            }
        }
    }
}

TEST_CASE("attention_prefill where later keys have much larger logits than the first ones") {
    for (const SimdLevel level : levels())
        for (const Sizes& sizes : {Sizes{9, 3, 64, 700}, Sizes{4, 1, 32, 600, 300}}) {
            INFO(name_of(level) << " " << sizes);
            const ForcedSimdLevel forced(level);
            Case<bf16> problem(sizes);
            // From key 400 on, logits grow by powers of two that take one or several steps of the weights' range.
            const int64_t d = sizes.head_dim;
            for (int g = 0; g < sizes.n_kv_heads; ++g)
                for (int64_t j = 400; j < sizes.n_tokens; ++j)
                    for (int64_t c = 0; c < d; ++c) {
                        bf16& x = problem.k[static_cast<size_t>((g * sizes.n_tokens + j) * d + c)];
                        x = from_float<bf16>(to_float(x) * static_cast<float>(1 << (j - 400) / 50));
                    }
            problem.check(problem.run(sizes.n_tokens), 13);
            CHECK(same_bits(problem.run(29), problem.run(sizes.n_tokens)));
        }
}

TEMPLATE_TEST_CASE("attention_prefill adds column sums of a chunk whose weights are too many to keep", "", float,
                   bf16) {
    for (const SimdLevel level : levels()) {
        INFO(name_of(level));
        const ForcedSimdLevel forced(level);
        const Case<TestType> problem({1, 1, 2, 88000, 20});
        std::vector<double> sums, chunked_sums;
        const auto whole = problem.run(88000, &sums);
        CHECK(same_bits(problem.run(1000, &chunked_sums), whole));
        double worst = 0;
        for (size_t i = 0; i < sums.size(); ++i) worst = std::max(worst, std::abs(chunked_sums[i] - sums[i]) / sums[i]);
        CHECK(worst < 1e-5);
    }
}

TEMPLATE_TEST_CASE("attention_prefill accepts a first key for each query", "", float, bf16) {
    for (const SimdLevel level : levels()) {
        for (const Sizes& sizes : {Sizes{9, 3, 64, 330, 100}, Sizes{2, 1, 32, 700, 20}, Sizes{4, 1, 16, 64, 1}}) {
            INFO(name_of(level) << " " << sizes);
            const ForcedSimdLevel forced(level);
            Case<TestType> problem(sizes);
            std::vector<double> window_sums, sums;
            const auto window = problem.run(sizes.n_tokens, &window_sums);
            for (int64_t i = 0; i < sizes.n_tokens; ++i)
                problem.first_keys.push_back(std::max<int64_t>(0, i - sizes.sliding_window + 1));
            CHECK(same_bits(problem.run(sizes.n_tokens, &sums), window));
            CHECK(same_bits(sums, window_sums));
            // Like a cache that lacks keys: first_keys stay constant for long, then jump.
            for (int64_t i = 0; i < sizes.n_tokens; ++i)
                problem.first_keys[static_cast<size_t>(i)] = i < 40 ? 0 : std::min<int64_t>(i, (i - 3) / 29 * 31);
            const auto steps = problem.run(sizes.n_tokens, &sums);
            problem.check(steps, 1, &sums);
            CHECK(same_bits(problem.run(23), steps));
        }
    }
    Case<float> problem({1, 1, 16, 4});
    problem.first_keys = {0, 1, 0, 0};
    CHECK_THROWS_AS(problem.run(4), std::invalid_argument);
    problem.first_keys = {0, 2, 2, 2};
    CHECK_THROWS_AS(problem.run(4), std::invalid_argument);
}

TEMPLATE_TEST_CASE("attention_prefill does not depend on chunks or threads", "", float, bf16) {
    const int threads_before = threads();
    // Larger logits raise the references of some queries but not of their neighbors.
    const float deviation = GENERATE(1.0f, 4.0f);
    for (const SimdLevel level : levels())
        for (const Sizes& sizes : {Sizes{9, 3, 64, 330}, Sizes{2, 2, 32, 700, 100}, Sizes{7, 1, 80, 150}}) {
            INFO(name_of(level) << " " << sizes << " deviation " << deviation);
            const ForcedSimdLevel forced(level);
            const Case<TestType> problem(sizes, deviation);
            set_threads(1);
            std::vector<double> sums, chunked_sums, threaded_sums;
            const auto whole = problem.run(sizes.n_tokens, &sums);
            const auto chunked = problem.run(37, &chunked_sums);
            set_threads(3);
            const auto threaded = problem.run(37, &threaded_sums);
            set_threads(threads_before);
            CHECK(same_bits(whole, chunked));
            CHECK(same_bits(chunked, threaded));
            CHECK(chunked_sums == threaded_sums);
            for (size_t i = 0; i < sums.size(); ++i)
                REQUIRE(chunked_sums[i] == Approx(sums[i]).epsilon(1e-6).margin(1e-30));
        }
}

TEMPLATE_TEST_CASE("attention_prefill does not depend on neighboring queries before a panel", "", float, bf16) {
    for (const SimdLevel level : levels())
        for (const Sizes& sizes : {Sizes{8, 8, 64, 800}, Sizes{4, 1, 32, 1100, 700}}) {
            INFO(name_of(level) << " " << sizes);
            const ForcedSimdLevel forced(level);
            const Case<TestType> problem(sizes);
            const auto whole = problem.run(sizes.n_tokens);
            for (const int64_t chunk : {500, 333, 61}) CHECK(same_bits(problem.run(chunk), whole));
        }
}

TEST_CASE("attention_prefill with rising logits and values close to overflow") {
    for (const SimdLevel level : levels()) {
        INFO(name_of(level));
        const ForcedSimdLevel forced(level);
        const Sizes sizes{1, 1, 16, 600};
        Case<float> problem(sizes, 0.01f);
        // One key of the third panel exceeds all others by 2^60, one of the second panel by 2^15.
        for (int64_t c = 0; c < 16; ++c) {
            for (int64_t i = 0; i < 600; ++i) problem.q[static_cast<size_t>(i * 16 + c)] = 1;
            problem.k[static_cast<size_t>(300 * 16 + c)] = 15 * 0.6931f / 4;
            problem.k[static_cast<size_t>(520 * 16 + c)] = 60 * 0.6931f / 4;
        }
        for (float& x : problem.v) x *= 1e28f;
        problem.check(problem.run(600), 7);
        CHECK(same_bits(problem.run(100), problem.run(600)));
    }
}

TEMPLATE_TEST_CASE("column sums of attention_prefill ignore padding queries", "", float, bf16) {
    for (const SimdLevel level : levels())
        for (const int64_t n : {3, 48, 50, 300}) {
            INFO(name_of(level) << " " << n);
            const ForcedSimdLevel forced(level);
            Case<TestType> problem({2, 1, 16, n});
            for (TestType& x : problem.q) x = from_float<TestType>(std::abs(to_float(x)) + 0.1f);
            problem.k[1 * 16 + 5] = from_float<TestType>(-std::numeric_limits<float>::infinity());
            std::vector<double> sums;
            problem.run(n, &sums);
            for (size_t i = 0; i < sums.size(); ++i)
                CHECK((std::isfinite(sums[i]) == (i % static_cast<size_t>(n) != 1) || sums[i] == 0));
        }
}

TEMPLATE_TEST_CASE("column sums of attention_prefill are the same without an output", "", float, bf16) {
    for (const SimdLevel level : levels())
        for (const Sizes& sizes : {Sizes{9, 3, 64, 330}, Sizes{2, 2, 32, 300, 100}}) {
            INFO(name_of(level) << " " << sizes);
            const ForcedSimdLevel forced(level);
            const Case<TestType> problem(sizes);
            std::vector<double> sums, alone(static_cast<size_t>(sizes.n_heads * sizes.n_tokens));
            std::vector<TestType> out = problem.run(sizes.n_tokens, &sums);
            PrefillAttention p = problem.problem(0, sizes.n_tokens, out);
            p.v = p.out = nullptr;
            p.column_sums = alone.data();
            p.column_stride = sizes.n_tokens;
            attention_prefill(p);
            CHECK(same_bits(alone, sums));
        }
}

TEST_CASE("column sums of attention_prefill for a prompt too long to keep its weights") {
    // A few queries at the end of many keys: the weights do not fit and are computed twice.
    const int64_t n = 40000, n_queries = 5;
    const Case<bf16> problem({3, 1, 16, n});
    for (const SimdLevel level : levels()) {
        INFO(name_of(level));
        const ForcedSimdLevel forced(level);
        std::vector<bf16> out(problem.q.size());
        std::vector<double> sums(static_cast<size_t>(3 * n), 1.0), expected(sums);
        PrefillAttention p = problem.problem(n - n_queries, n, out);
        p.column_sums = sums.data();
        p.column_stride = n;
        attention_prefill(p);
        for (int h = 0; h < 3; ++h)
            for (int64_t i = n - n_queries; i < n; ++i) {
                int64_t first = 0;
                const std::vector<double> w = problem.weights(i, h, first);
                for (size_t j = 0; j < w.size(); ++j) expected[static_cast<size_t>(h * n) + j] += w[j];
            }
        double worst = 0;
        for (size_t i = 0; i < sums.size(); ++i)
            worst = std::max(worst, std::abs(sums[i] - expected[i]) / (expected[i] - 1));
        CHECK(worst <= 1e-5);
    }
}

TEST_CASE("several attention_prefill problems in one call equal single calls") {
    const Case<bf16> problem({3, 1, 64, 400});
    std::vector<bf16> alone(problem.q.size()), together(problem.q.size());
    std::vector<PrefillAttention> problems;
    for (const int64_t begin : {0, 100, 101, 350}) {
        attention_prefill(problem.problem(begin, begin + 50, alone));
        problems.push_back(problem.problem(begin, begin + 50, together));
    }
    problems.push_back(problem.problem(20, 20, together));  // does nothing without queries
    attention_prefill(problems);
    CHECK(same_bits(alone, together));
}

TEST_CASE("attention_prefill rejects contradictory problems") {
    const Case<float> problem({4, 2, 16, 8});
    std::vector<float> out(problem.q.size());
    const auto refused = [&](auto change) {
        PrefillAttention p = problem.problem(0, 8, out);
        change(p);
        CHECK_THROWS_AS(attention_prefill(p), std::invalid_argument);
    };
    refused([](PrefillAttention& p) { p.dtype = DType::f16; });
    refused([](PrefillAttention& p) { p.n_kv_heads = 3; });
    refused([](PrefillAttention& p) { p.head_dim = 15; });
    refused([](PrefillAttention& p) { p.scale = 0; });
    refused([](PrefillAttention& p) { p.q = nullptr; });
    refused([](PrefillAttention& p) { p.v = nullptr; });
    refused([](PrefillAttention& p) { p.out = nullptr; });
    refused([](PrefillAttention& p) { p.q_token_stride = 63; });
    refused([](PrefillAttention& p) { p.kv_head_stride = 127; });
    refused([](PrefillAttention& p) { p.sliding_window = -1; });
    std::vector<double> sums(4 * 8);
    refused([&](PrefillAttention& p) { p.column_sums = sums.data(), p.column_stride = 7; });
}
