#include "kernels/attention_decode.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <deque>

#include "kernels/threads/team.h"
#include "tests/kernels/kernel_case.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

/// One ragged row with its own arrays.
template <class T>
struct Row {
    int d, n_queries;
    int64_t n, kv_stride;
    float scale;
    std::vector<T> q, k, v, out;
    std::vector<float> cardinality, attention;

    Row(int head_dim, int queries, int64_t entries, int64_t padding, bool merged, unsigned seed)
        : d(head_dim),
          n_queries(queries),
          n(entries),
          kv_stride(head_dim + padding),
          scale(1.0f / std::sqrt(static_cast<float>(head_dim))),
          q(random_values<T>(static_cast<size_t>(queries * head_dim), seed)),
          k(random_values<T>(static_cast<size_t>(entries * kv_stride), seed + 1)),
          v(random_values<T>(static_cast<size_t>(entries * kv_stride), seed + 2)),
          out(q.size()),
          attention(static_cast<size_t>(queries * entries)) {
        if (merged)
            for (int64_t j = 0; j < n; ++j) cardinality.push_back(static_cast<float>(1 + (j * 7) % 5));
    }

    DecodeRow view() {
        DecodeRow row;
        row.q = q.data();
        row.q_stride = d;
        row.n_queries = n_queries;
        row.k = k.data();
        row.v = v.data();
        row.k_stride = row.v_stride = kv_stride;
        row.n_entries = n;
        row.cardinality = cardinality.empty() ? nullptr : cardinality.data();
        row.out = out.data();
        row.out_stride = d;
        row.attention = attention.data();
        return row;
    }

    void check() const {
        const double tolerance = sizeof(T) == 4 ? 5e-6 : rounding<T> + 5e-6;  // one rounding of the result
        double worst = 0, worst_weight = 0;
        for (int i = 0; i < n_queries; ++i) {
            std::vector<double> e;
            for (int64_t j = 0; j < n; ++j) {
                double dot = 0;
                for (int c = 0; c < d; ++c) dot += value(q, i * d + c) * value(k, j * kv_stride + c);
                e.push_back(dot * static_cast<double>(scale));
            }
            const double largest = *std::max_element(e.begin(), e.end());
            double total = 0;
            for (size_t j = 0; j < e.size(); ++j) {
                e[j] = std::exp(e[j] - largest);
                total += e[j] * (cardinality.empty() ? 1.0 : static_cast<double>(cardinality[j]));
            }
            for (int c = 0; c < d; ++c) {
                double expected = 0, size = 0;
                for (int64_t j = 0; j < n; ++j) {
                    const double term = e[static_cast<size_t>(j)] / total * value(v, j * kv_stride + c);
                    expected += term;
                    size += std::abs(term);
                }
                worst = std::max(worst, std::abs(value(out, i * d + c) - expected) / size);
            }
            for (size_t j = 0; j < e.size(); ++j) {
                const double expected =
                    e[j] / total * (cardinality.empty() ? 1.0 : static_cast<double>(cardinality[j]));
                const double got = static_cast<double>(attention[static_cast<size_t>(i) * e.size() + j]);
                worst_weight = std::max(worst_weight, std::abs(got - expected) / expected);
            }
        }
        CHECK(worst <= tolerance);
        CHECK(worst_weight <= 5e-6);
    }
};

template <class T>
std::vector<Row<T>> ragged_rows(int d) {
    std::vector<Row<T>> rows;
    const std::vector<int64_t> lengths = {1, 2, 3, 15, 16, 17, 31, 33, 63, 65, 127, 511, 512, 513, 1030, 2047};
    for (size_t i = 0; i < lengths.size(); ++i)
        rows.emplace_back(d, 1 + static_cast<int>(i) % 9, lengths[i], i % 3 == 2 ? d : 0, i % 4 == 3,
                          10 * static_cast<unsigned>(i));
    return rows;
}

template <class T>
void decode(std::vector<Row<T>>& rows) {
    std::vector<DecodeRow> views;
    for (Row<T>& row : rows) views.push_back(row.view());
    attention_decode(views, rows.front().d, dtype_of<T>, rows.front().scale);
}

}  // namespace

TEMPLATE_TEST_CASE("attention_decode equals a double loop on ragged rows", "", float, bf16) {
    for (const SimdLevel level : levels())
        for (const int d : {2, 16, 32, 64, 80, 96, 100, 128}) {
            INFO(name_of(level) << " " << name_of(dtype_of<TestType>) << " d=" << d);
            const ForcedSimdLevel forced(level);
            auto rows = ragged_rows<TestType>(d);
            decode(rows);
            for (const auto& row : rows) {
                INFO(row.n_queries << " queries, " << row.n << " entries, stride " << row.kv_stride);
                row.check();
            }
        }
}

TEMPLATE_TEST_CASE("attention_decode depends neither on threads nor on the other rows", "", float, bf16) {
    const int threads_before = threads();
    for (const SimdLevel level : levels()) {
        INFO(name_of(level));
        const ForcedSimdLevel forced(level);
        auto together = ragged_rows<TestType>(64);
        set_threads(3);
        decode(together);
        set_threads(1);
        auto alone = ragged_rows<TestType>(64);
        for (size_t i = 0; i < alone.size(); ++i) {
            const DecodeRow row = alone[i].view();
            attention_decode({&row, 1}, 64, dtype_of<TestType>, alone[i].scale);
            CHECK(same_bits(alone[i].out, together[i].out));
            CHECK(alone[i].attention == together[i].attention);
        }
        set_threads(threads_before);
    }
}

namespace {

/// Entries of a row from a given one on, read as if they were computed.
template <class T>
struct Read : DecodeEntries {
    Read(const Row<T>& whole, int64_t from) : row(whole), first(from) {}
    void read_keys(int64_t begin, int64_t end, float* keys) const override {
        for (int64_t j = begin; j < end; ++j)
            for (int c = 0; c < row.d; ++c)
                keys[(j - begin) * row.d + c] = static_cast<float>(value(row.k, (first + j) * row.kv_stride + c));
    }
    size_t scratch_floats(int n_queries) const override { return static_cast<size_t>(n_queries * row.d); }
    void sum_values(int64_t begin, int64_t end, const float* weights, int n_queries, float* scratch,
                    float* out) const override {
        std::fill_n(scratch, n_queries * row.d, 0.0f);
        for (int query = 0; query < n_queries; ++query)
            for (int64_t j = begin; j < end; ++j)
                for (int c = 0; c < row.d; ++c)
                    scratch[query * row.d + c] += weights[query * decode_tile + j - begin] *
                                                  static_cast<float>(value(row.v, (first + j) * row.kv_stride + c));
        std::copy_n(scratch, n_queries * row.d, out);
    }
    const Row<T>& row;
    int64_t first;
};

/// A row in three parts: the keys of the first entries have only every third channel, the next entries are computed on
/// reading, the rest are plain.
template <class T>
struct PartedRow {
    PartedRow(int d, int queries, int64_t narrow, int64_t read, int64_t plain, bool merged, unsigned seed)
        : whole(d, queries, narrow + read + plain, 3, merged, seed), reader(whole, narrow) {
        for (int c = 0; c < d; ++c) {
            if (c % 3 == 0) continue;
            for (int64_t j = 0; j < narrow; ++j) whole.k[static_cast<size_t>(j * whole.kv_stride + c)] = T{};
        }
        for (int64_t j = 0; j < narrow; ++j)
            for (int c = 0; c < d; c += 3) keys.push_back(whole.k[static_cast<size_t>(j * whole.kv_stride + c)]);
        for (int i = 0; i < queries; ++i)
            for (int c = 0; c < d; c += 3) q.push_back(whole.q[static_cast<size_t>(i * d + c)]);
        lengths = {narrow, read, plain};
    }
    PartedRow(const PartedRow&) = delete;

    void add_to(std::vector<DecodeRow>& rows) {
        const DecodeRow all = whole.view();
        int64_t begin = 0;
        bool continues = false;
        for (int part = 0; part < 3; begin += lengths[static_cast<size_t>(part++)]) {
            if (lengths[static_cast<size_t>(part)] == 0) continue;
            DecodeRow row = all;
            row.n_entries = lengths[static_cast<size_t>(part)];
            row.v = whole.v.data() + begin * whole.kv_stride;
            row.k = whole.k.data() + begin * whole.kv_stride;
            if (row.cardinality) row.cardinality += begin;
            row.attention += begin;
            row.attention_stride = whole.n;
            row.continues = continues;
            if (continues) row.out = nullptr;
            if (part == 0) {
                row.k = keys.data(), row.q = q.data();
                row.key_dim = (whole.d + 2) / 3;
                row.k_stride = row.q_stride = row.key_dim;
            } else if (part == 1) {
                row.k = row.v = nullptr;
                row.entries = &reader;
            }
            rows.push_back(row);
            continues = true;
        }
    }

    Row<T> whole;
    Read<T> reader;
    std::vector<T> keys, q;
    std::array<int64_t, 3> lengths{};
};

template <class T>
std::deque<PartedRow<T>> parted_rows(int d) {
    std::deque<PartedRow<T>> rows;
    const std::vector<std::array<int64_t, 3>> lengths = {{1, 1, 1},     {700, 0, 32}, {0, 300, 0},   {513, 129, 1},
                                                         {0, 128, 512}, {5, 0, 0},    {40, 500, 70}, {0, 1, 2}};
    for (size_t i = 0; i < lengths.size(); ++i)
        rows.emplace_back(d, 1 + static_cast<int>(i) % 5, lengths[i][0], lengths[i][1], lengths[i][2], i % 2 == 1,
                          100 + 10 * static_cast<unsigned>(i));
    return rows;
}

}  // namespace

TEMPLATE_TEST_CASE("attention_decode reads a row whose parts are stored in different ways", "", float, bf16) {
    const int threads_before = threads();
    for (const SimdLevel level : levels())
        for (const int d : {6, 64, 80, 128}) {
            INFO(name_of(level) << " " << name_of(dtype_of<TestType>) << " d=" << d);
            const ForcedSimdLevel forced(level);
            auto rows = parted_rows<TestType>(d), alone = parted_rows<TestType>(d);
            std::vector<DecodeRow> views;
            for (auto& row : rows) row.add_to(views);
            set_threads(3);
            attention_decode(views, d, dtype_of<TestType>, rows.front().whole.scale);
            set_threads(1);
            for (size_t i = 0; i < rows.size(); ++i) {
                INFO("row " << i);
                rows[i].whole.check();
                views.clear();
                alone[i].add_to(views);
                attention_decode(views, d, dtype_of<TestType>, alone[i].whole.scale);
                CHECK(same_bits(alone[i].whole.out, rows[i].whole.out));
                CHECK(alone[i].whole.attention == rows[i].whole.attention);
            }
            set_threads(threads_before);
        }
}

TEST_CASE("attention_decode by hand") {
    // Two entries of equal logits; the second stands for three tokens whose values are already summed.
    const std::vector<float> q = {1, 0}, k = {2, 0, 2, 5}, v = {1, 10, 3, 30}, cardinality = {1, 3};
    std::vector<float> out(2), attention(2);
    DecodeRow row;
    row.q = q.data(), row.q_stride = 2, row.n_queries = 1;
    row.k = k.data(), row.v = v.data(), row.k_stride = row.v_stride = 2, row.n_entries = 2;
    row.cardinality = cardinality.data(), row.out = out.data(), row.out_stride = 2, row.attention = attention.data();
    attention_decode({&row, 1}, 2, DType::f32, 1.0f);
    CHECK(out[0] == Approx(1.0f));
    CHECK(out[1] == Approx(10.0f));
    CHECK(attention[0] == Approx(0.25f));
    CHECK(attention[1] == Approx(0.75f));
}

TEST_CASE("attention_decode rejects contradictory rows") {
    Row<float> complete(16, 2, 8, 0, false, 1);
    const auto refused = [&](auto change) {
        DecodeRow row = complete.view();
        change(row);
        CHECK_THROWS_AS(attention_decode({&row, 1}, 16, DType::f32, 1.0f), std::invalid_argument);
    };
    refused([](DecodeRow& row) { row.k = nullptr; });
    refused([](DecodeRow& row) { row.n_entries = 0; });
    refused([](DecodeRow& row) { row.n_queries = 0; });
    refused([](DecodeRow& row) { row.k_stride = 15; });
    refused([](DecodeRow& row) { row.q_stride = 15; });
    refused([](DecodeRow& row) { row.out = nullptr; });
    refused([](DecodeRow& row) { row.key_dim = 17; });
    refused([](DecodeRow& row) { row.key_dim = -1; });
    refused([](DecodeRow& row) { row.continues = true; });  // continues no row
    const Read<float> reader(complete, 0);
    refused([&](DecodeRow& row) { row.entries = &reader; });  // has keys, too
    std::vector<DecodeRow> two(2, complete.view());
    two[1].continues = true;
    two[1].n_queries = 1;
    CHECK_THROWS_AS(attention_decode(two, 16, DType::f32, 1.0f), std::invalid_argument);
    const DecodeRow row = complete.view();
    CHECK_THROWS_AS(attention_decode({&row, 1}, 16, DType::f16, 1.0f), std::invalid_argument);
    CHECK_THROWS_AS(attention_decode({&row, 1}, 16, DType::f32, 0.0f), std::invalid_argument);
    attention_decode({}, 16, DType::f32, 1.0f);  // does nothing without rows
}
