// The prefill attention kernels, thread by thread on the processor.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <memory>

#include "kernels/cuda/prefill_plan.h"
#include "tests/kernels/kernel_case.h"
#include "tests/kernels/on_device.h"
#include "tests/skip.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

template <class T, int D>
void prefill_emulated(std::span<const PrefillAttention> problems, bool backwards) {
    using Block = cuda::HostBlock<cuda::PrefillShape<T, D>::block_threads>;
    cuda::PrefillPlan plan, again;
    for (const PrefillAttention& problem : problems) {
        REQUIRE(cuda::PrefillPlan::reason_against(problem) == "");
        plan.add<T, D>(problem);
    }
    again = plan;
    cuda::Workspace size;
    again.place(size);
    std::vector<char> memory(size.bytes() + 1, 'x');
    cuda::Workspace workspace(memory.data());
    const auto placed = plan.place(workspace);
    std::memcpy(workspace.host_copy_or_device(), workspace.host().data(), workspace.host().size());

    Block block(backwards);
    const auto shared = std::make_unique<cuda::PrefillShared<T, D>>();
    const auto n_items = static_cast<int64_t>(plan.items.size());
    for (int64_t i = 0; i < plan.n_blocks; ++i)
        cuda::PrefillTile<Block, T, D>(placed.items[cuda::item_of_block(placed.items, n_items, i, plan.n_blocks)], i)
            .attend(block, spoiled(*shared));
    const auto column_shared = std::make_unique<cuda::ColumnShared<T, D>>();
    const auto n_columns = static_cast<int64_t>(plan.columns.size());
    for (int64_t i = 0; i < plan.n_column_blocks; ++i) {
        const cuda::ColumnItem& columns =
            placed.columns[cuda::item_of_block(placed.columns, n_columns, i, plan.n_column_blocks)];
        cuda::ColumnTile<Block, T, D>(placed.items[columns.item], columns, i).add(block, spoiled(*column_shared));
    }
    CHECK(memory.back() == 'x');
}

template <class T>
void prefill_emulated(std::span<const PrefillAttention> problems, bool backwards = false) {
    switch (cuda::PrefillPlan::padded(problems.front().head_dim)) {
        case 64:
            return prefill_emulated<T, 64>(problems, backwards);
        case 96:
            return prefill_emulated<T, 96>(problems, backwards);
        case 128:
            return prefill_emulated<T, 128>(problems, backwards);
        default:
            return prefill_emulated<T, 256>(problems, backwards);
    }
}

struct Sizes {
    int n_heads, n_kv_heads, head_dim;
    int64_t q_begin, n_queries;
    int64_t sliding_window = 0;
    bool merged = false, own_first_keys = false;
    float sharpness = 1;  ///< factor of the usual scale
};

std::ostream& operator<<(std::ostream& out, const Sizes& s) {
    return out << "H=" << s.n_heads << " G=" << s.n_kv_heads << " d=" << s.head_dim << " begin=" << s.q_begin
               << " n=" << s.n_queries << " window=" << s.sliding_window << " merged=" << s.merged
               << " first_keys=" << s.own_first_keys << " sharpness=" << s.sharpness;
}

template <class T>
struct Case {
    Sizes sizes;
    std::vector<T> q, k, v, out;
    std::vector<float> cardinality;
    std::vector<int64_t> first_keys;
    std::vector<double> sums;

    explicit Case(const Sizes& s)
        : sizes(s),
          q(random_values<T>(static_cast<size_t>(s.n_queries * width(s)), 1)),
          k(random_values<T>(static_cast<size_t>(s.n_kv_heads * s.head_dim * (n_keys() + 2)), 2)),
          v(random_values<T>(k.size(), 3)),
          out(q.size()),
          sums(static_cast<size_t>(s.n_heads * (n_keys() + 1)), 0.5) {
        for (int64_t j = 0; s.merged && j < n_keys(); ++j)
            cardinality.push_back(j % 3 == 0 ? 1.0f : static_cast<float>(1 + j % 7));
        for (int64_t i = 0; s.own_first_keys && i < s.n_queries; ++i)
            first_keys.push_back(i < 20 ? 0 : std::min<int64_t>(s.q_begin + i, (i - 3) / 29 * 31));
    }
    static int64_t width(const Sizes& s) { return int64_t{s.n_heads} * s.head_dim + 8; }
    int64_t n_keys() const { return sizes.q_begin + sizes.n_queries; }

    PrefillAttention problem(bool wants_sums = true) {
        PrefillAttention p;
        p.dtype = dtype_of<T>;
        p.n_heads = sizes.n_heads;
        p.n_kv_heads = sizes.n_kv_heads;
        p.head_dim = sizes.head_dim;
        p.scale = sizes.sharpness / std::sqrt(static_cast<float>(sizes.head_dim));
        p.q_begin = sizes.q_begin;
        p.n_queries = sizes.n_queries;
        p.sliding_window = sizes.sliding_window;
        p.first_keys = first_keys.empty() ? nullptr : first_keys.data();
        p.q = q.data();
        p.k = k.data();
        p.v = v.data();
        p.q_token_stride = width(sizes);
        p.out_token_stride = width(sizes) - 6;
        p.kv_head_stride = (n_keys() + 2) * sizes.head_dim;
        p.cardinality = cardinality.empty() ? nullptr : cardinality.data();
        p.out = out.data();
        p.column_sums = wants_sums ? sums.data() : nullptr;
        p.column_stride = n_keys() + 1;
        return p;
    }
};

const std::vector<Sizes> all_sizes = {
    {1, 1, 64, 0, 1},
    {3, 1, 64, 0, 70},
    {8, 2, 80, 5, 40},
    {2, 1, 104, 70, 30},
    {4, 4, 128, 0, 65},
    {8, 1, 128, 130, 17},
    {2, 1, 256, 3, 50},
    {4, 2, 64, 0, 150, 40},
    {9, 3, 64, 100, 90, 64},
    {3, 1, 40, 61, 33, 0, true},
    {4, 1, 64, 40, 130, 0, true, true},
    {2, 2, 8, 0, 700},
    {7, 1, 128, 0, 100},
    {3, 1, 128, 301, 1},
    {4, 1, 128, 40, 130, 0, true, true},
    {2, 1, 128, 0, 333, 130, true},
    {1, 1, 96, 70, 200, 50, false, false, 20},
    {4, 2, 128, 60, 200, 0, false, false, 20},
    {2, 1, 64, 5, 80, 30, true, false, 1e-9f},
};

template <class T>
double furthest(const std::vector<T>& a, const std::vector<T>& b) {
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double error = std::abs(value(a, static_cast<int64_t>(i)) - value(b, static_cast<int64_t>(i)));
        worst = std::isnan(error)
                    ? 1e9
                    : std::max(worst, error / std::max(0.25, std::abs(value(b, static_cast<int64_t>(i)))));
    }
    return worst;
}

/// On a processor without bf16 products the weights stay f32, but the card rounds them.
constexpr double bf16_error = 0x1p-6;

double furthest_sum(const std::vector<double>& a, const std::vector<double>& b) {
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]) / b[i]);
    return worst;
}

}  // namespace

TEMPLATE_TEST_CASE("simulated prefill attention of a card equals the CPU's", "[cuda]", float, bf16) {
    for (const Sizes& sizes : all_sizes) {
        INFO(sizes);
        Case<TestType> expected(sizes), found(sizes), turned(sizes);
        attention_prefill(expected.problem());
        const PrefillAttention problem = found.problem(), backwards = turned.problem();
        prefill_emulated<TestType>({&problem, 1});
        prefill_emulated<TestType>({&backwards, 1}, true);
        const double sharper = std::max(1.0f, sizes.sharpness);
        CHECK(furthest(found.out, expected.out) <= (sizeof(TestType) == 4 ? 1e-5 * sharper : bf16_error));
        CHECK(furthest_sum(found.sums, expected.sums) <= 5e-6 * sharper);
        CHECK(same_bits(found.out, turned.out));
        CHECK(found.sums == turned.sums);
    }
}

TEMPLATE_TEST_CASE("prefill attention of a card depends neither on other problems nor on chunks", "[cuda]", float,
                   bf16) {
    const Sizes sizes = GENERATE(Sizes{4, 2, 64, 0, 150, 40}, Sizes{3, 1, 128, 0, 290, 0, false, false, 20});
    INFO(sizes);
    Case<TestType> whole(sizes), chunked(sizes);
    Case<TestType> other({4, 1, 64, 40, 130, 0, true, true}), other_alone({4, 1, 64, 40, 130, 0, true, true});
    const PrefillAttention all = whole.problem(), beside = other_alone.problem();
    prefill_emulated<TestType>({&all, 1});
    prefill_emulated<TestType>({&beside, 1});
    for (int64_t begin = 0; begin < sizes.n_queries; begin += 37) {
        PrefillAttention part = chunked.problem();
        part.q_begin = begin;
        part.n_queries = std::min<int64_t>(37, sizes.n_queries - begin);
        part.q = chunked.q.data() + begin * part.q_token_stride;
        part.out = chunked.out.data() + begin * part.out_token_stride;
        const std::vector<PrefillAttention> problems = {part, other.problem(false)};
        prefill_emulated<TestType>(problems);
    }
    CHECK(same_bits(whole.out, chunked.out));
    CHECK(same_bits(other.out, other_alone.out));
    CHECK(furthest_sum(whole.sums, chunked.sums) <= 1e-6);
}

TEST_CASE("prefill attention of a card gives the same bits for column sums alone, output alone and both", "[cuda]") {
    const Sizes sizes = GENERATE(Sizes{3, 1, 64, 10, 80}, Sizes{2, 1, 128, 70, 150});
    Case<bf16> both(sizes), sums_alone(sizes), out_alone(sizes);
    const PrefillAttention a = both.problem(), c = out_alone.problem(false);
    PrefillAttention b = sums_alone.problem();
    b.out = nullptr;
    const auto untouched = sums_alone.out;
    prefill_emulated<bf16>({&a, 1});
    prefill_emulated<bf16>({&b, 1});
    prefill_emulated<bf16>({&c, 1});
    CHECK(both.sums == sums_alone.sums);
    CHECK(same_bits(sums_alone.out, untouched));
    CHECK(same_bits(both.out, out_alone.out));
}

TEST_CASE("prefill attention of a card with cardinality 1 gives the same bits as without", "[cuda]") {
    const Sizes sizes = GENERATE(Sizes{3, 1, 64, 10, 80}, Sizes{2, 1, 128, 70, 150});
    Case<bf16> plain(sizes), counted(sizes);
    counted.cardinality.assign(static_cast<size_t>(counted.n_keys()), 1.0f);
    const PrefillAttention a = plain.problem(), b = counted.problem();
    prefill_emulated<bf16>({&a, 1});
    prefill_emulated<bf16>({&b, 1});
    CHECK(same_bits(plain.out, counted.out));
    CHECK(plain.sums == counted.sums);
}

TEST_CASE("prefill attention of a card rejects unsupported arrays", "[cuda]") {
    Case<bf16> complete({4, 2, 64, 0, 16});
    const auto reason = [&](auto change) {
        PrefillAttention p = complete.problem();
        change(p);
        return cuda::PrefillPlan::reason_against(p);
    };
    CHECK(reason([](PrefillAttention&) {}) == "");
    CHECK(reason([](PrefillAttention& p) { p.head_dim = 12; }) != "");
    CHECK(reason([](PrefillAttention& p) { p.head_dim = 264; }) != "");
    CHECK(reason([](PrefillAttention& p) { p.q_token_stride += 4; }) != "");
    CHECK(reason([](PrefillAttention& p) { p.k = static_cast<const bf16*>(p.k) + 1; }) != "");
    CHECK(reason([](PrefillAttention& p) { p.v = nullptr; }) != "");
    CHECK(reason([](PrefillAttention& p) { p.scale = 0; }) != "");
    CHECK(reason([](PrefillAttention& p) { p.scale = NAN; }) != "");
}

TEMPLATE_TEST_CASE("prefill attention on CUDA equals the CPU's", "[card]", float, bf16) {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    using namespace cuda::abi;
    const auto bytes_for = device_function<AttentionPrefillWorkspace>(attention_prefill_workspace_symbol);
    const auto attend = device_function<AttentionPrefill>(attention_prefill_symbol);
    for (const Sizes& sizes : all_sizes) {
        INFO(sizes);
        Case<TestType> expected(sizes), found(sizes);
        attention_prefill(expected.problem());
        Mirror mirror;
        mirror.add(found.q), mirror.add(found.k), mirror.add(found.v), mirror.add(found.out);
        mirror.add(found.cardinality), mirror.add(found.sums);
        PrefillAttention p = found.problem();
        p.q = mirror(p.q), p.k = mirror(p.k), p.v = mirror(p.v), p.out = mirror(p.out);
        p.cardinality = mirror(p.cardinality), p.column_sums = mirror(p.column_sums);
        on_device(bytes_for(&p, 1), [&](void* workspace, size_t bytes, void* stream, char* error, size_t size) {
            return attend(&p, 1, workspace, bytes, stream, error, size);
        });
        mirror.fetch();
        const double sharper = std::max(1.0f, sizes.sharpness);
        CHECK(furthest(found.out, expected.out) <= (sizeof(TestType) == 4 ? 1e-5 * sharper : bf16_error));
        CHECK(furthest_sum(found.sums, expected.sums) <= 5e-6 * sharper);
    }
}
