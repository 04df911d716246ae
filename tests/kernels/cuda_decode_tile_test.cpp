// The decode attention kernel, thread by thread on the processor.
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>

#include "kernels/cuda/decode_plan.h"
#include "tests/kernels/kernel_case.h"
#include "tests/kernels/on_device.h"
#include "tests/skip.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

using Block = cuda::HostBlock<cuda::decode_threads>;

template <class T, int Q>
void run_passes(const cuda::DecodePlan::Passes& all, const cuda::DecodePass* passes, const cuda::DecodeArrays& arrays,
                bool backwards) {
    Block block(backwards);
    const auto shared = std::make_unique<cuda::DecodeShared<T, Q>>();
    const auto n = static_cast<int64_t>(all.passes.size());
    for (int64_t i = 0; i < all.n_blocks; ++i) {
        const cuda::DecodePass& pass = passes[cuda::item_of_block(passes, n, i, all.n_blocks)];
        cuda::DecodePiece<Block, T, Q>(arrays, pass, i).attend(block, spoiled(*shared));
        cuda::join_if_last<T>(block, arrays, arrays.chains + arrays.parts[pass.part].chain);
    }
}

template <int D, int Q>
void run_matrix_passes(const cuda::DecodePlan& plan, size_t kind, const cuda::DecodePlan::Placed& placed,
                       bool backwards) {
    Block block(backwards);
    const auto shared = std::make_unique<cuda::DecodeMatrixShared<D>>();
    const auto n = static_cast<int64_t>(plan.of_kinds[kind].passes.size());
    for (int64_t i = 0; i < plan.of_kinds[kind].n_blocks; ++i) {
        const cuda::DecodePass& pass =
            placed.passes[kind][cuda::item_of_block(placed.passes[kind], n, i, plan.of_kinds[kind].n_blocks)];
        cuda::DecodeMatrixPiece<Block, D, Q>(placed.arrays, pass, i).attend(block, spoiled(*shared));
        cuda::join_if_last<bf16>(block, placed.arrays, placed.arrays.chains + placed.arrays.parts[pass.part].chain);
    }
}

template <int D>
void run_matrices(const cuda::DecodePlan& plan, const cuda::DecodePlan::Placed& placed, bool backwards) {
    run_matrix_passes<D, 4>(plan, cuda::DecodePlan::first_matrix_kind, placed, backwards);
    run_matrix_passes<D, 8>(plan, cuda::DecodePlan::first_matrix_kind + 1, placed, backwards);
}

template <class T>
void decode_emulated(std::span<const DecodeRow> rows, int head_dim, float scale, bool backwards = false) {
    std::string refused;
    const cuda::DecodePlan plan = cuda::DecodePlan::make<T>(rows, head_dim, refused);
    REQUIRE(refused == "");
    cuda::Workspace size;
    plan.place(size, head_dim, scale);
    std::vector<char> memory(size.bytes() + 1, 'x'), told(size.host_bytes());
    cuda::Workspace workspace(memory.data(), backwards ? told.data() : nullptr);  // either place of the host's data
    const auto placed = plan.place(workspace, head_dim, scale);
    std::memcpy(workspace.host_copy_or_device(), workspace.host().data(), workspace.host().size());
    run_passes<T, 1>(plan.of_kinds[0], placed.passes[0], placed.arrays, backwards);
    run_passes<T, 2>(plan.of_kinds[1], placed.passes[1], placed.arrays, backwards);
    run_passes<T, 4>(plan.of_kinds[2], placed.passes[2], placed.arrays, backwards);
    run_passes<T, 8>(plan.of_kinds[3], placed.passes[3], placed.arrays, backwards);
    const int width = cuda::DecodePlan::matrix_width(head_dim);
    if (width == 64)
        run_matrices<64>(plan, placed, backwards);
    else if (width == 128)
        run_matrices<128>(plan, placed, backwards);
    else
        run_matrices<256>(plan, placed, backwards);
    Block block(backwards);
    for (size_t kind = 0; kind < plan.of_kinds.size(); ++kind)
        for (int64_t i = 0; i < plan.of_kinds[kind].n_blocks; ++i) {
            const auto n_passes = static_cast<int64_t>(plan.of_kinds[kind].passes.size());
            const cuda::DecodePass& pass =
                placed
                    .passes[kind][cuda::item_of_block(placed.passes[kind], n_passes, i, plan.of_kinds[kind].n_blocks)];
            cuda::scale_decode_weights(block, placed.arrays, pass, i, cuda::DecodePlan::queries_of_kind[kind]);
        }
    CHECK(memory.back() == 'x');
}

/// A row in one or two parts. The keys of the first part have only some channels.
template <class T>
struct Row {
    int d, key_dim, n_queries;
    int64_t n, n_first, stride;
    bool wants_attention;
    std::vector<T> q, k, v, out;
    std::vector<float> cardinality, attention;

    Row(int head_dim, int queries, int64_t entries, unsigned seed)
        : d(head_dim),
          key_dim(seed % 5 == 4 ? head_dim - 3 : head_dim),
          n_queries(queries),
          n(entries),
          n_first(seed % 3 == 1 ? entries / 3 : 0),
          stride(head_dim + (seed % 4 == 1   ? 3
                             : seed % 4 == 2 ? head_dim
                                             : 0)),
          wants_attention(seed % 2 == 0),
          q(random_values<T>(static_cast<size_t>(queries * head_dim), seed)),
          k(random_values<T>(static_cast<size_t>(entries * stride), seed + 1)),
          v(random_values<T>(static_cast<size_t>(entries * stride), seed + 2)),
          out(q.size() + 1),
          attention(static_cast<size_t>(queries * entries) + 1, -1.0f) {
        if (seed % 4 == 3)
            for (int64_t j = 0; j < n; ++j) cardinality.push_back(static_cast<float>(1 + (j * 7) % 5));
    }

    void add_to(std::vector<DecodeRow>& rows) {
        for (const cuda::Range part : {cuda::Range{0, n_first}, cuda::Range{n_first, n}}) {
            if (part.begin == part.end) continue;
            DecodeRow row;
            row.q = q.data();
            row.q_stride = d;
            row.n_queries = n_queries;
            row.key_dim = part.end == n ? 0 : key_dim;
            row.k = k.data() + part.begin * stride;
            row.v = v.data() + part.begin * stride;
            row.k_stride = row.v_stride = stride;
            row.n_entries = part.end - part.begin;
            row.cardinality = cardinality.empty() ? nullptr : cardinality.data() + part.begin;
            row.continues = part.begin > 0;
            row.out = row.continues ? nullptr : out.data();
            row.out_stride = d;
            row.attention = wants_attention ? attention.data() + part.begin : nullptr;
            row.attention_stride = n;
            rows.push_back(row);
        }
    }
};

template <class T>
std::vector<Row<T>> ragged_rows(int d) {
    std::vector<Row<T>> rows;
    const int queries[] = {1, 3, 4, 8, 2, 9, 17, 5};
    const int64_t lengths[] = {1, 2, 31, 128, 129, 255, 256, 257, 511, 700, 1030, 3001};
    unsigned seed = 0;
    for (const int64_t length : lengths) {
        rows.emplace_back(d, queries[seed % 8], length, seed);
        ++seed;
    }
    return rows;
}

template <class T>
std::vector<DecodeRow> views(std::vector<Row<T>>& rows) {
    std::vector<DecodeRow> all;
    for (Row<T>& row : rows) row.add_to(all);
    return all;
}

template <class T>
double furthest(const std::vector<T>& a, const std::vector<T>& b) {
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double x = static_cast<double>(to_float(a[i])), y = static_cast<double>(to_float(b[i]));
        const double error = std::abs(x - y) / std::max(1.0 / 64, std::abs(y));
        worst = std::isnan(error) ? 1e9 : std::max(worst, error);
    }
    return worst;
}

}  // namespace

TEMPLATE_TEST_CASE("simulated decode attention of a card equals the CPU's", "[cuda]", float, bf16) {
    for (const int d : {64, 80, 128, 256, 20}) {
        INFO("d=" << d);
        auto expected = ragged_rows<TestType>(d), found = ragged_rows<TestType>(d), turned = ragged_rows<TestType>(d);
        const float scale = 1.0f / std::sqrt(static_cast<float>(d));
        attention_decode(views(expected), d, dtype_of<TestType>, scale);
        decode_emulated<TestType>(views(found), d, scale);
        decode_emulated<TestType>(views(turned), d, scale, true);
        for (size_t i = 0; i < found.size(); ++i) {
            INFO(found[i].n_queries << " queries, " << found[i].n << " entries");
            CHECK(furthest(found[i].out, expected[i].out) <= (sizeof(TestType) == 4 ? 2e-5 : 0x1p-7));
            CHECK(furthest(found[i].attention, expected[i].attention) <= 1e-5);
            CHECK(same_bits(found[i].out, turned[i].out));
            CHECK(found[i].attention == turned[i].attention);
        }
    }
}

TEMPLATE_TEST_CASE("decode attention of a card does not depend on other rows of the call", "[cuda]", float, bf16) {
    auto together = ragged_rows<TestType>(64), alone = ragged_rows<TestType>(64);
    decode_emulated<TestType>(views(together), 64, 0.125f);
    for (size_t i = 0; i < alone.size(); ++i) {
        std::vector<DecodeRow> rows;
        alone[i].add_to(rows);
        decode_emulated<TestType>(rows, 64, 0.125f);
        CHECK(same_bits(alone[i].out, together[i].out));
        CHECK(alone[i].attention == together[i].attention);
    }
}

TEST_CASE("decode attention of a card rejects unsupported rows", "[cuda]") {
    Row<float> row(64, 2, 10, 0);
    const auto reason = [&](auto change, int d = 64) {
        std::vector<DecodeRow> rows;
        row.add_to(rows);
        change(rows[0]);
        std::string refused;
        cuda::DecodePlan::make<float>(rows, d, refused);
        return refused;
    };
    CHECK(reason([](DecodeRow&) {}) == "");
    CHECK(reason([](DecodeRow& it) { it.entries = reinterpret_cast<const DecodeEntries*>(&it); }) ==
          "entries that are computed when they are read are not supported on the device");
    CHECK(reason([](DecodeRow& it) { it.n_entries = 0; }) != "");
    CHECK(reason([](DecodeRow& it) { it.continues = true; }) != "");
    CHECK(reason([](DecodeRow& it) { it.k = nullptr; }) != "");
    CHECK(reason([](DecodeRow&) {}, 257) != "");
}

TEMPLATE_TEST_CASE("decode attention on CUDA equals the CPU's", "[card]", float, bf16) {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    const auto bytes_for =
        device_function<cuda::abi::AttentionDecodeWorkspace>(cuda::abi::attention_decode_workspace_symbol);
    const auto decode = device_function<cuda::abi::AttentionDecode>(cuda::abi::attention_decode_symbol);
    for (const int d : {64, 80, 128, 256, 20}) {
        INFO("d=" << d);
        auto expected = ragged_rows<TestType>(d), found = ragged_rows<TestType>(d);
        const float scale = 1.0f / std::sqrt(static_cast<float>(d));
        attention_decode(views(expected), d, dtype_of<TestType>, scale);
        Mirror mirror;
        for (Row<TestType>& row : found) {
            mirror.add(row.q), mirror.add(row.k), mirror.add(row.v), mirror.add(row.out);
            mirror.add(row.cardinality), mirror.add(row.attention);
        }
        std::vector<DecodeRow> rows = views(found);
        for (DecodeRow& row : rows) {
            row.q = mirror(row.q), row.k = mirror(row.k), row.v = mirror(row.v), row.out = mirror(row.out);
            row.cardinality = mirror(row.cardinality), row.attention = mirror(row.attention);
        }
        on_device(bytes_for(rows.data(), rows.size(), d, dtype_of<TestType>),
                  [&](void* workspace, size_t bytes, void* stream, char* error, size_t size) {
                      return decode(rows.data(), rows.size(), d, dtype_of<TestType>, scale, workspace, bytes, stream,
                                    error, size);
                  });
        mirror.fetch();
        for (size_t i = 0; i < found.size(); ++i) {
            INFO(found[i].n_queries << " queries, " << found[i].n << " entries");
            CHECK(furthest(found[i].out, expected[i].out) <= (sizeof(TestType) == 4 ? 2e-5 : 0x1p-7));
            CHECK(furthest(found[i].attention, expected[i].attention) <= 1e-5);
        }
    }
}
