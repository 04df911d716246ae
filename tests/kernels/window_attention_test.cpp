#include "kernels/window_attention.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cuda_library.h"
#include "kernels/threads/team.h"
#include "tests/kernels/kernel_case.h"
#include "tests/kernels/on_device.h"
#include "tests/skip.h"

using namespace kvscope::kernels;
using namespace kvscope::kernels::testing;

namespace {

struct Sizes {
    int n_heads, n_kv_heads, head_dim, window;
    int64_t n_tokens;
    bool prefix_only = false;
    int64_t sliding_window = 0;
};

std::ostream& operator<<(std::ostream& out, const Sizes& s) {
    return out << "H=" << s.n_heads << " G=" << s.n_kv_heads << " d=" << s.head_dim << " w=" << s.window
               << " N=" << s.n_tokens << " prefix_only=" << s.prefix_only << " sliding_window=" << s.sliding_window;
}

const std::vector<Sizes> all_sizes = {
    {1, 1, 64, 1, 1},
    {2, 1, 16, 2, 2},
    {3, 1, 32, 3, 31},
    {9, 3, 64, 32, 65},
    {4, 4, 80, 8, 127},
    {8, 1, 96, 31, 33},
    {4, 1, 128, 33, 513},
    {5, 1, 40, 16, 300},
    {9, 3, 64, 32, 1500, true},
    {2, 2, 64, 32, 33, true},
    {3, 1, 16, 8, 8, true},
    {7, 1, 64, 64, 700, false, 100},
    {4, 2, 32, 32, 600, true, 40},
    {3, 3, 64, 32, 400, true, 8},
};

/// Keys with gaps between heads, so that the test sees whether the stride is used.
template <class T>
struct Case {
    Sizes sizes;
    int64_t key_stride, n_keys;
    std::vector<float> queries;
    std::vector<T> keys;

    explicit Case(const Sizes& s)
        : sizes(s),
          key_stride((s.n_tokens + 3) * s.head_dim),
          n_keys(s.prefix_only ? s.n_tokens - s.window : s.n_tokens),
          queries(random_values<float>(static_cast<size_t>(s.n_heads * s.window * s.head_dim), 1)),
          keys(random_values<T>(static_cast<size_t>(s.n_kv_heads * key_stride), 2)) {}

    void run_on_card(WindowAttention p, std::vector<float>& mean) const {
        auto its_queries = queries;
        auto its_keys = keys;
        Mirror mirror;
        mirror.add(its_queries), mirror.add(its_keys), mirror.add(mean);
        p.scale = 1.0f / std::sqrt(static_cast<float>(p.head_dim));
        p.query_head_stride = int64_t{p.window} * p.head_dim;
        p.queries = mirror(its_queries.data()), p.keys = mirror(its_keys.data()), p.mean = mirror(mean.data());
        const auto bytes_for =
            device_function<cuda::abi::RunWindowAttentionWorkspace>(cuda::abi::window_attention_workspace_symbol);
        on_device(cuda::abi::window_attention_symbol, p, bytes_for(&p));
        mirror.fetch();
    }

    std::vector<float> run(bool on_card = false) const {
        std::vector<float> mean(static_cast<size_t>(sizes.n_heads * n_keys) + 1, -3.0f);
        WindowAttention p;
        p.n_heads = sizes.n_heads;
        p.n_kv_heads = sizes.n_kv_heads;
        p.head_dim = sizes.head_dim;
        p.window = sizes.window;
        p.n_tokens = sizes.n_tokens;
        p.prefix_only = sizes.prefix_only;
        p.sliding_window = sizes.sliding_window;
        p.keys_dtype = dtype_of<T>;
        p.key_head_stride = key_stride;
        p.queries = queries.data();
        p.keys = keys.data();
        p.mean = mean.data();
        if (on_card)
            run_on_card(p, mean);
        else
            window_attention(p);
        CHECK(mean.back() == -3.0f);  // nothing is written past the result
        mean.pop_back();
        return mean;
    }

    std::vector<double> expected() const {
        std::vector<double> mean(static_cast<size_t>(sizes.n_heads * n_keys));
        for (int h = 0; h < sizes.n_heads; ++h)
            for (int i = 0; i < sizes.window; ++i) {
                const int64_t position = sizes.n_tokens - sizes.window + i;
                const int64_t begin =
                    sizes.sliding_window ? std::max<int64_t>(0, position - sizes.sliding_window + 1) : 0;
                const int64_t end = std::min(n_keys, position + 1);
                std::vector<double> e;
                for (int64_t j = begin; j < end; ++j) {
                    double dot = 0;
                    for (int c = 0; c < sizes.head_dim; ++c)
                        dot +=
                            value(queries, int64_t{h * sizes.window + i} * sizes.head_dim + c) *
                            value(keys, h / (sizes.n_heads / sizes.n_kv_heads) * key_stride + j * sizes.head_dim + c);
                    e.push_back(dot / std::sqrt(static_cast<double>(sizes.head_dim)));
                }
                if (e.empty()) continue;
                const double largest = *std::max_element(e.begin(), e.end());
                double total = 0;
                for (double& x : e) total += x = std::exp(x - largest);
                for (size_t j = 0; j < e.size(); ++j)
                    mean[static_cast<size_t>(h * n_keys + begin) + j] += e[j] / total / sizes.window;
            }
        return mean;
    }

    void check(bool on_card = false) const {
        const auto got = run(on_card);
        const auto want = expected();
        double worst = 0;
        for (size_t i = 0; i < want.size(); ++i) {
            if (want[i] == 0)
                CHECK(got[i] == 0.0f);  // not seen by any query
            else
                worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]) / want[i]);
        }
        CHECK(worst <= 5e-6);  // f32 arithmetic for any type of keys
    }
};

void check_all(bool on_card = false) {
    for (const Sizes& sizes : all_sizes) {
        INFO(sizes);
        Case<float>(sizes).check(on_card);
        Case<bf16>(sizes).check(on_card);
    }
}

}  // namespace

TEST_CASE("window_attention on the CPU equals a double loop") {
    for (const SimdLevel level : levels()) {
        INFO(name_of(level));
        const ForcedSimdLevel forced(level);
        check_all();
    }
}

TEST_CASE("window_attention on CUDA equals a double loop", "[card]") {
    if (!cuda::available()) KVSCOPE_SKIP(cuda::unavailable_reason().c_str());
    check_all(true);
}

TEST_CASE("window_attention does not depend on the number of threads") {
    const int threads_before = threads();
    for (const SimdLevel level : levels()) {
        INFO(name_of(level));
        const ForcedSimdLevel forced(level);
        const Case<bf16> problem({6, 2, 64, 64, 900});
        set_threads(1);
        const auto one = problem.run();
        set_threads(4);
        CHECK(problem.run() == one);
        set_threads(threads_before);
    }
}

TEST_CASE("window_attention of a prompt too long to keep its weights") {
    for (const SimdLevel level : levels()) {
        INFO(name_of(level));
        const ForcedSimdLevel forced(level);
        Case<bf16>({2, 1, 16, 4, 60000}).check();
    }
}

TEST_CASE("window_attention rejects contradictory problems") {
    const std::vector<float> zeros(64);
    std::vector<float> mean(64);
    const auto refused = [&](auto change) {
        WindowAttention p;
        p.n_heads = 2, p.n_kv_heads = 1, p.head_dim = 4, p.window = 2, p.n_tokens = 8;
        p.queries = zeros.data(), p.keys = zeros.data(), p.mean = mean.data();
        change(p);
        CHECK_THROWS_AS(window_attention(p), std::invalid_argument);
    };
    refused([](WindowAttention& p) { p.window = 9; });
    refused([](WindowAttention& p) { p.window = 0; });
    refused([](WindowAttention& p) { p.keys_dtype = DType::f16; });
    refused([](WindowAttention& p) { p.n_heads = 3, p.n_kv_heads = 2; });
    refused([](WindowAttention& p) { p.mean = nullptr; });
}
