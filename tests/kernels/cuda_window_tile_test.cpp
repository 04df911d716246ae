// The window attention kernels, thread by thread on the processor.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>

#include "kernels/cuda/window_tile.h"
#include "kernels/window_attention.h"
#include "tests/kernels/kernel_case.h"
#include "tests/kernels/on_device.h"
#include "tests/skip.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

template <class T>
void window_emulated(const WindowAttention& p, bool peak, bool backwards = false) {
    using Block = cuda::HostBlock<cuda::window_tile_keys>;
    Block block(backwards);
    const auto shared = std::make_unique<cuda::WindowShared>();
    const int64_t n_keys = p.prefix_only ? p.n_tokens - p.window : p.n_tokens;
    const int64_t n_tiles = cuda::divide_rounding_up(n_keys, cuda::window_tile_keys),
                  n_queries = int64_t{p.n_heads} * p.window;
    std::vector<cuda::Softmax> sums(static_cast<size_t>(n_queries * n_tiles)), totals(static_cast<size_t>(n_queries));
    const auto tile = [&](int64_t i) { return cuda::WindowTile<Block, T>{p, n_keys, i * cuda::window_tile_keys}; };
    for (int64_t i = 0; i < n_tiles; ++i)
        for (int head = 0; head < p.n_heads; ++head)
            for (int first = 0; first < p.window; first += cuda::window_tile_queries)
                tile(i).sum(block, head, first, spoiled(*shared), sums.data() + int64_t{head} * p.window * n_tiles + i,
                            n_tiles);
    for (int64_t query = 0; query < n_queries; ++query)
        totals[static_cast<size_t>(query)] = cuda::join_window_softmax(sums.data(), n_tiles, query);
    for (int64_t i = 0; i < n_tiles; ++i) {
        for (int head = 0; head < p.n_heads && !peak; ++head)
            tile(i).mean(block, head, totals.data() + int64_t{head} * p.window, spoiled(*shared));
        if (peak) tile(i).peak(block, totals.data(), spoiled(*shared));
    }
}

struct Sizes {
    int n_heads, n_kv_heads, head_dim, window;
    int64_t n_tokens;
    bool prefix_only = false;
    int64_t sliding_window = 0;
};

const std::vector<Sizes> all_sizes = {
    {1, 1, 64, 1, 1},
    {3, 1, 32, 3, 31},
    {9, 3, 64, 32, 65},
    {4, 4, 80, 8, 127},
    {4, 1, 128, 33, 513},
    {9, 3, 64, 32, 700, true},
    {3, 1, 16, 8, 8, true},
    {7, 1, 64, 64, 300, false, 100},
    {4, 2, 32, 32, 600, true, 40},
    {2, 1, 256, 5, 140},
};

template <class T>
struct Case {
    WindowAttention p;
    std::vector<float> queries, mean;
    std::vector<T> keys;
    explicit Case(const Sizes& s, bool peak = false) {
        p.n_heads = s.n_heads;
        p.n_kv_heads = s.n_kv_heads;
        p.head_dim = s.head_dim;
        p.window = s.window;
        p.n_tokens = s.n_tokens;
        p.prefix_only = s.prefix_only;
        p.sliding_window = s.sliding_window;
        p.scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
        p.query_head_stride = int64_t{s.window} * s.head_dim;
        p.key_head_stride = (s.n_tokens + 3) * s.head_dim;
        p.keys_dtype = dtype_of<T>;
        queries = random_values<float>(static_cast<size_t>(s.n_heads * p.query_head_stride), 1);
        keys = random_values<T>(static_cast<size_t>(s.n_kv_heads * p.key_head_stride), 2);
        const int64_t n_keys = s.prefix_only ? s.n_tokens - s.window : s.n_tokens;
        mean.assign(static_cast<size_t>(n_keys * (peak ? 1 : s.n_heads)) + 1, -3.0f);
        p.queries = queries.data();
        p.keys = keys.data();
        p.mean = mean.data();
    }
};

void compare(const std::vector<float>& found, const std::vector<float>& expected) {
    float worst = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        if (expected[i] == 0)
            CHECK(found[i] == 0.0f);
        else
            worst = std::max(worst, std::abs(found[i] - expected[i]) / std::abs(expected[i]));
    }
    CHECK(worst <= 1e-5f);
}

}  // namespace

TEMPLATE_TEST_CASE("simulated window attention of a card equals the CPU's", "[cuda]", float, bf16) {
    for (const Sizes& sizes : all_sizes) {
        INFO("H=" << sizes.n_heads << " d=" << sizes.head_dim << " w=" << sizes.window << " N=" << sizes.n_tokens);
        Case<TestType> expected(sizes), found(sizes), turned(sizes);
        window_attention(expected.p);
        window_emulated<TestType>(found.p, false);
        window_emulated<TestType>(turned.p, false, true);
        compare(found.mean, expected.mean);
        CHECK(found.mean == turned.mean);
    }
}

TEMPLATE_TEST_CASE("simulated window_attention_head_max of a card equals the CPU's", "[cuda]", float, bf16) {
    for (const Sizes& sizes : all_sizes) {
        if (sizes.prefix_only) continue;
        INFO("H=" << sizes.n_heads << " d=" << sizes.head_dim << " w=" << sizes.window << " N=" << sizes.n_tokens);
        Case<TestType> expected(sizes, true), found(sizes, true), turned(sizes, true);
        window_attention_head_max(expected.p);
        window_emulated<TestType>(found.p, true);
        window_emulated<TestType>(turned.p, true, true);
        compare(found.mean, expected.mean);
        CHECK(found.mean == turned.mean);
    }
}

TEMPLATE_TEST_CASE("window_attention_head_max on CUDA equals the CPU's", "[card]", float, bf16) {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    using namespace cuda::abi;
    const auto bytes_for = device_function<RunWindowAttentionWorkspace>(window_attention_workspace_symbol);
    for (const Sizes& sizes : all_sizes) {
        if (sizes.prefix_only) continue;
        INFO("H=" << sizes.n_heads << " d=" << sizes.head_dim << " w=" << sizes.window << " N=" << sizes.n_tokens);
        Case<TestType> expected(sizes, true), found(sizes, true);
        window_attention_head_max(expected.p);
        Mirror mirror;
        mirror.add(found.queries), mirror.add(found.keys), mirror.add(found.mean);
        WindowAttention p = found.p;
        p.queries = mirror(p.queries), p.keys = mirror(p.keys), p.mean = mirror(p.mean);
        on_device(window_peak_symbol, p, bytes_for(&p));
        mirror.fetch();
        compare(found.mean, expected.mean);
    }
}
