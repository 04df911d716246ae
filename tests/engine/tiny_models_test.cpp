#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "common/json.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/decode/decode_answers.h"
#include "engine/prefill/prefill.h"
#include "kernels/cpu_features.h"
#include "tests/engine/whole_cache.h"

using namespace kvscope;

// Tiny random models of every family, some quantized by llama.cpp. References: transformers
// (scripts/golden/tiny_models.py, k_quants.py).
TEST_CASE("logits and greedy continuations of every family equal transformers'") {
    const auto level = GENERATE(kernels::SimdLevel::generic, kernels::SimdLevel::avx2, kernels::SimdLevel::avx512,
                                kernels::SimdLevel::avx512_bf16);
    if (level > kernels::supported_simd_level()) return;
    const kernels::ForcedSimdLevel forced(level);
    int n_models = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(KVSCOPE_TEST_DATA) / "models")) {
        const auto golden = nlohmann::json::parse(std::ifstream(entry.path() / "golden.json"));
        CAPTURE(entry.path().filename().string(), name_of(level));
        ++n_models;
        engine::SilentProgress progress;
        const auto checkpoint = checkpoint::open_checkpoint(entry.path() / golden["model"].get<std::string>());
        const engine::Transformer model(checkpoint->config(),
                                        engine::load_weights(*checkpoint, kernels::DType::f32, progress),
                                        kernels::DType::f32);
        const auto ids = golden["input_ids"].get<std::vector<int32_t>>();
        const auto positions = golden["positions"].get<std::vector<size_t>>();
        for (size_t i = 0; i < positions.size(); ++i) {
            engine::PrefillRequest request;
            request.ids = std::span<const int32_t>(ids).first(positions[i] + 1);
            const auto result = engine::prefill(model, request, nullptr, progress);
            const auto expected = golden["logits"][i].get<std::vector<float>>();
            REQUIRE(result.last_logits.size() == expected.size());
            for (size_t token = 0; token < expected.size(); ++token) {
                CAPTURE(positions[i], token);
                REQUIRE(std::abs(result.last_logits[token] - expected[token]) < 1e-4);
            }
        }
        const auto expected = golden["greedy"].get<std::vector<int32_t>>();
        auto [cache, logits] = engine::testing::whole_cache(model, ids);
        cache.reserve(static_cast<int64_t>(expected.size()));
        engine::Sequence sequence{&cache, static_cast<int64_t>(ids.size())};
        const auto generations = engine::decode_answers(model, {&sequence, 1}, {&logits, 1},
                                                        static_cast<int64_t>(expected.size()), {}, {}, progress);
        CHECK(generations[0].ids == expected);
    }
    CHECK(n_models >= 15);
}

// The prompt is longer than the window, so that a window in the wrong layer changes the logits.
TEST_CASE("a window in another layer of a Ministral model gives other logits than transformers'") {
    const auto folder = std::filesystem::path(KVSCOPE_TEST_DATA) / "models" / "ministral-layer-types";
    const auto golden = nlohmann::json::parse(std::ifstream(folder / "golden.json"));
    const auto ids = golden["input_ids"].get<std::vector<int32_t>>();
    const auto expected = golden["logits"].back().get<std::vector<float>>();
    engine::SilentProgress progress;
    const auto checkpoint = checkpoint::open_checkpoint(folder);
    const auto farthest = [&](const std::vector<int64_t>& windows) {
        auto config = checkpoint->config();
        config.sliding_window = windows;
        const engine::Transformer model(config, engine::load_weights(*checkpoint, kernels::DType::f32, progress),
                                        kernels::DType::f32);
        engine::PrefillRequest request;
        request.ids = ids;
        const auto logits = engine::prefill(model, request, nullptr, progress).last_logits;
        float most = 0;
        for (size_t token = 0; token < expected.size(); ++token)
            most = std::max(most, std::abs(logits[token] - expected[token]));
        return most;
    };
    const std::vector<int64_t> windows = checkpoint->config().sliding_window;
    REQUIRE(windows == std::vector<int64_t>{9, 0, 9});
    CHECK(farthest(windows) < 1e-4f);
    for (size_t layer = 0; layer < windows.size(); ++layer) {
        CAPTURE(layer);
        auto other = windows;
        other[layer] = other[layer] == 0 ? 9 : 0;
        CHECK(farthest(other) > 1e-2f);
    }
}

TEST_CASE("a prompt must not be empty and must fit in the model's context") {
    engine::SilentProgress progress;
    const auto checkpoint =
        checkpoint::open_checkpoint(std::filesystem::path(KVSCOPE_TEST_DATA) / "models" / "smollm2-tied");
    const engine::Transformer model(
        checkpoint->config(), engine::load_weights(*checkpoint, kernels::DType::f32, progress), kernels::DType::f32);
    CHECK_THROWS_AS(engine::prefill(model, {}, nullptr, progress), std::invalid_argument);
    const std::vector<int32_t> ids(static_cast<size_t>(model.config().context_length) + 1, 1);
    engine::PrefillRequest request;
    request.ids = ids;
    CHECK_THROWS_AS(engine::prefill(model, request, nullptr, progress), std::invalid_argument);
    const std::vector<int32_t> unknown{static_cast<int32_t>(model.config().vocab_size)};
    request.ids = unknown;
    CHECK_THROWS_AS(engine::prefill(model, request, nullptr, progress), std::invalid_argument);
}
