#include "policies/api/observations.h"

#include <catch2/catch.hpp>
#include <thread>

#include "kernels/bf16.h"
#include "kernels/diversify_queries.h"
#include "tests/policies/random_cache.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;

namespace {

/// Mean over the last w queries by the definition. `prefix` excludes the window from softmax and columns.
std::vector<double> expected_attention(const Layer& layer, int64_t w, float lambda, bool prefix) {
    const int64_t n = layer.n_tokens, d = layer.shape.head_dim;
    const int64_t columns = prefix ? n - w : n;
    std::vector<double> mean(static_cast<size_t>(layer.shape.n_heads * columns), 0.0);
    for (int h = 0; h < layer.shape.n_heads; ++h) {
        std::vector<float> window(layer.queries.begin() + (h * n + n - w) * d, layer.queries.begin() + (h + 1) * n * d);
        kvscope::kernels::diversify_queries(window.data(), w, d, lambda, window.data());
        for (int64_t i = 0; i < w; ++i) {
            const auto weights = layer.attention(h, window.data() + i * d, prefix ? columns : n - w + i + 1);
            for (size_t j = 0; j < weights.size(); ++j) mean[static_cast<size_t>(h * columns) + j] += weights[j] / w;
        }
    }
    return mean;
}

}  // namespace

TEST_CASE("window attention equals its definition, for both ranges, with and without diversification",
          "[observations]") {
    Cache cache = random_cache({1, 6, 3, 16}, 77, 31, 20);
    LayerObservations& observations = *cache.observations[0];
    for (int window : {1, 8, 20}) {
        for (float lambda : {0.0f, 0.45f}) {
            for (SoftmaxRange range : {SoftmaxRange::visible, SoftmaxRange::prefix}) {
                CAPTURE(window, lambda, range == SoftmaxRange::prefix);
                const auto& found = observations.window_attention(window, lambda, range);
                const auto expected =
                    expected_attention(cache.layers[0], window, lambda, range == SoftmaxRange::prefix);
                REQUIRE(found.size() == expected.size());
                for (size_t i = 0; i < found.size(); ++i)
                    CHECK(found[i] == Approx(expected[i]).epsilon(2e-4).margin(1e-7));
                CHECK(&observations.window_attention(window, lambda, range) == &found);
            }
        }
    }
}

TEST_CASE("shared values are computed once, until they are freed or other tokens are appended", "[observations]") {
    Cache cache = random_cache({1, 6, 3, 16}, 77, 31, 20);
    LayerObservations& observations = *cache.observations[0];
    int n_made = 0;
    const auto made = [&](const std::string& key) { return *observations.shared<int>(key, [&] { return ++n_made; }); };
    CHECK(made("a") == 1);
    CHECK(made("a") == 1);
    CHECK(made("b") == 2);
    observations.keep_latest(1);
    CHECK(made("b") == 2);
    CHECK(made("a") == 3);
    observations.forget_appended();
    CHECK(made("a") == 4);
    CHECK_THROWS_AS(observations.appended_attention(), std::logic_error);
}

TEST_CASE("appended keys give the same attention in contiguous and in separate memory", "[observations]") {
    const ModelShape shape{1, 6, 3, 16};
    Cache cache = random_cache(shape, 77, 31, 20);
    const Layer& layer = cache.layers[0];
    LayerObservations& observations = *cache.observations[0];
    const int64_t n = layer.n_tokens, d = shape.head_dim;
    const auto m = observations.n_appended();
    const auto attention = [&] {
        const HeadRows rows = observations.appended_attention();
        std::vector<float> all;
        for (int h = 0; h < shape.n_heads; ++h)
            all.insert(all.end(), rows.data + h * rows.stride, rows.data + h * rows.stride + n);
        return all;
    };
    const std::vector<float> first = attention();
    std::vector<float> all, other(layer.appended_keys.rbegin(), layer.appended_keys.rend());
    for (int64_t g = 0; g < shape.n_kv_heads; ++g) {
        all.insert(all.end(), layer.keys.begin() + g * n * d, layer.keys.begin() + (g + 1) * n * d);
        all.insert(all.end(), layer.appended_keys.begin() + g * m * d, layer.appended_keys.begin() + (g + 1) * m * d);
        all.resize(all.size() + static_cast<size_t>(5 * d));  // extra space
    }
    const auto set = [&](const std::vector<float>& keys, EntriesView together) {
        observations.set_appended(layer.appended_queries, {keys.data(), kvscope::kernels::DType::f32, m * d}, m, m,
                                  together);
        return attention();
    };
    CHECK(set(other, {}) != first);
    CHECK(set(layer.appended_keys, {}) == first);
    CHECK(set(layer.appended_keys, {all.data(), kvscope::kernels::DType::f32, (n + m + 5) * d}) == first);
}

TEST_CASE("the window's peak is the mean over its queries of the largest attention of any KV head", "[observations]") {
    Cache cache = random_cache({1, 6, 3, 16}, 77, 31, 20);
    const Layer& layer = cache.layers[0];
    for (int64_t sliding : {0, 30}) {
        cache.observe(20);
        LayerObservations& observations = *cache.observations[0];
        observations.sliding_window = sliding;
        for (int window : {1, 8, 20}) {
            CAPTURE(window, sliding);
            std::vector<double> expected(77, 0.0);
            for (int64_t i = 77 - window; i < 77; ++i) {
                std::vector<double> most(77, 0.0);
                const auto begin = static_cast<size_t>(sliding ? i - sliding + 1 : 0);
                for (int g = 0; g < 3; ++g) {
                    std::vector<double> of_group(77, 0.0);
                    for (int h : {2 * g, 2 * g + 1}) {
                        const auto weights = layer.attention(h, layer.queries.data() + (h * 77 + i) * 16, i + 1);
                        double sum = 0.0;
                        for (size_t j = begin; j < weights.size(); ++j) sum += weights[j];
                        for (size_t j = begin; j < weights.size(); ++j) of_group[j] += weights[j] / sum / 2;
                    }
                    for (size_t j = 0; j < most.size(); ++j) most[j] = std::max(most[j], of_group[j]);
                }
                for (size_t j = 0; j < most.size(); ++j) expected[j] += most[j] / window;
            }
            const auto& found = observations.window_peak(window);
            REQUIRE(found.size() == expected.size());
            for (size_t j = 0; j < found.size(); ++j) CHECK(found[j] == Approx(expected[j]).epsilon(2e-4).margin(1e-7));
            CHECK(&observations.window_peak(window) == &found);
        }
        CHECK_THROWS_AS(observations.window_peak(21), std::logic_error);
    }
}

TEST_CASE("the window's peak is the same from bf16 keys", "[observations]") {
    Cache cache = random_cache({1, 6, 3, 16}, 77, 31, 20);
    std::vector<kvscope::kernels::bf16> rounded;
    for (float& value : cache.layers[0].keys) {
        rounded.push_back(kvscope::kernels::bf16_from_float(value));
        value = kvscope::kernels::to_float(rounded.back());
    }
    cache.observe(20);
    const std::vector<float> of_floats = cache.observations[0]->window_peak(8);
    cache.observe(20);
    cache.observations[0]->keys.data = rounded.data();
    cache.observations[0]->keys.dtype = kvscope::kernels::DType::bf16;
    CHECK(cache.observations[0]->window_peak(8) == of_floats);
}

TEST_CASE("requesting more queries than observed is an error; a window is cut to the prompt", "[observations]") {
    Cache cache = random_cache({1, 2, 1, 8}, 10, 31, 4);
    CHECK_THROWS_AS(cache.observations[0]->window_attention(5, 0.0f, SoftmaxRange::visible), std::logic_error);
    Cache few = random_cache({1, 2, 1, 8}, 3, 31, 8);
    CHECK(few.observations[0]->window_attention(8, 0.0f, SoftmaxRange::visible).size() == 6);
    CHECK(few.observations[0]->window_attention(8, 0.0f, SoftmaxRange::prefix).empty());
}

TEST_CASE("attentions that one layer needed are computed for another", "[observations]") {
    Cache cache = random_cache({2, 6, 3, 16}, 60, 31, 20);
    LayerObservations &first = *cache.observations[0], &second = *cache.observations[1];
    const auto nothing = first.asked();
    CHECK((nothing.window_attentions.empty() && nothing.window_peaks.empty() && !nothing.appended_attention));
    first.window_attention(8, 0.0f, SoftmaxRange::visible);
    first.window_attention(20, 0.5f, SoftmaxRange::prefix);
    first.window_peak(8);
    second.work_out(first.asked());
    const auto asked = second.asked();
    CHECK(asked.window_attentions == first.asked().window_attentions);
    CHECK(asked.window_attentions.size() == 2);
    CHECK(asked.window_peaks == std::vector<int>{8});
    CHECK(&second.window_peak(8) == &second.window_peak(8));
    CHECK(second.asked().window_peaks == asked.window_peaks);
}

TEST_CASE("several runs may request values at the same time", "[observations]") {
    Cache cache = random_cache({1, 6, 3, 16}, 120, 33, 16);
    LayerObservations& observations = *cache.observations[0];
    std::vector<const std::vector<float>*> found(4);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < found.size(); ++t) {
        threads.emplace_back(
            [&, t] { found[t] = &observations.window_attention(t % 2 ? 8 : 16, 0.0f, SoftmaxRange::visible); });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(found[0] == found[2]);
    CHECK(found[1] == found[3]);
    CHECK(found[0]->size() == 6 * 120);
}
