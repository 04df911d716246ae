#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "engine/common/engine_error.h"
#include "engine/decode/decode.h"
#include "engine/decode/sampler.h"
#include "kernels/cpu_features.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/fake_device.h"
#include "tests/engine/matrix_of.h"
#include "tests/engine/whole_cache.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

/// Returns the tiny model with a damaged embedding of one token.
engine::Transformer damaged(kernels::DType dtype, int32_t token) {
    engine::SilentProgress progress;
    const auto& checkpoint = tiny_model().checkpoint();
    auto weights = engine::load_weights(checkpoint, dtype, progress);
    const at::Tensor numbers = weights.embedding.numbers().clone();
    numbers.select(0, token).fill_(std::numeric_limits<float>::quiet_NaN());
    weights.embedding = matrix_of(numbers);
    return engine::Transformer(checkpoint.config(), std::move(weights), dtype).on(engine::device_of_tests());
}

}  // namespace

TEST_CASE("the error about NaN does not recommend a number type, which may be in use already") {
    try {
        engine::refuse_nan();
    } catch (const engine::RunError& error) {
        CHECK_THAT(error.what(), Catch::Matchers::Contains("contain NaN") &&
                                     Catch::Matchers::Contains("download the model's files again") &&
                                     !Catch::Matchers::Contains("f32"));
    }
}

TEST_CASE("NaN anywhere in a prompt or a question causes the sampler's error, with every instruction set") {
    const auto dtype = GENERATE(kernels::DType::f32, kernels::DType::bf16);
    const int32_t token = 77;
    const auto model = damaged(dtype, token);
    auto fine = some_ids(tiny_model(), 90);
    for (auto& id : fine) id = id == token ? 78 : id;
    for (const auto level : {kernels::SimdLevel::generic, kernels::SimdLevel::avx2, kernels::SimdLevel::avx512,
                             kernels::SimdLevel::avx512_bf16}) {
        if (level > kernels::supported_simd_level()) continue;
        const kernels::ForcedSimdLevel forced(level);
        CAPTURE(name_of(dtype), name_of(level));
        engine::Sampler sampler({});
        CHECK_NOTHROW(sampler.next(whole_cache(model, fine).second));
        for (const size_t place : {0, 1, 44, 88, 89}) {
            CAPTURE(place);
            auto ids = fine;
            ids[place] = token;
            CHECK_THROWS_AS(sampler.next(whole_cache(model, ids).second), engine::RunError);

            auto cache = whole_cache(model, fine).first;
            cache.reserve(90);
            engine::Sequence sequence{&cache, 90};
            const std::span<const int32_t> question(ids);
            const auto residual = engine::feed_tokens(model, {&sequence, 1}, {&question, 1}, {.given = true});
            const auto logits = model.logits(residual.narrow(0, 89, 1));
            CHECK_THROWS_AS(sampler.next({logits.const_data_ptr<float>(), static_cast<size_t>(logits.size(1))}),
                            engine::RunError);
        }
    }
}
