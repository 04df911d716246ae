#include <catch2/catch.hpp>
#include <cmath>

#include "engine/decode/decode_answers.h"
#include "engine/projection_spectra.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/whole_cache.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

// Reference: transformers in f32 on the same dequantized weights; see scripts/golden/.
TEST_CASE("the default model's tokens and greedy continuation equal the reference's", "[arithmetic][default_model]") {
    const auto& model = default_model_f32();
    engine::SilentProgress progress;
    const auto prompts = golden("engine/prompt_ids.json")["prompts"];
    const auto expected = golden("engine/default_model.json")["prompts"];
    for (const auto& [name, prompt] : prompts.items()) {
        CAPTURE(name);
        const auto ids = prompt["ids"].get<std::vector<int32_t>>();
        const auto ours = engine::tokenize_prompt(model, prompt["user"].get<std::string>(), "", {});
        CHECK(ours.text == prompt["text"].get<std::string>());
        CHECK(ours.ids == ids);

        auto [cache, logits] = whole_cache(model.transformer(), ids);
        const auto& top = expected[name]["last_logits_top"];
        for (size_t i = 0; i < top.size(); ++i)
            CHECK(std::abs(logits[top[i][0].get<size_t>()] - expected[name]["last_logits_exact"][i].get<float>()) <
                  1e-3);
        const auto continuation = expected[name]["continuation"].get<std::vector<int32_t>>();
        cache.reserve(static_cast<int64_t>(continuation.size()));
        engine::Sequence sequence{&cache, static_cast<int64_t>(ids.size())};
        const auto generations = engine::decode_answers(model.transformer(), {&sequence, 1}, {&logits, 1},
                                                        static_cast<int64_t>(continuation.size()), {}, {}, progress);
        CHECK(generations[0].ids == continuation);
    }
}

TEST_CASE("the default model's spectra equal the reference's", "[default_model]") {
    const auto& model = default_model_f32();
    engine::SilentProgress progress;
    trace::ModelRecord record;
    engine::add_projection_spectra(model.checkpoint(), model.fingerprint(), record, progress);
    const auto expected = golden("engine/full_measures.json")["model"]["spectrum"];
    const auto hidden = static_cast<size_t>(model.transformer().config().hidden_size);
    const std::pair<const char*, const std::vector<float>*> parts[] = {
        {"q", &record.spectrum_q}, {"k", &record.spectrum_k}, {"v", &record.spectrum_v}};
    for (const auto& [name, values] : parts) {
        for (size_t layer = 0; layer < expected[name].size(); ++layer) {
            const auto& row = expected[name][layer];
            for (size_t i = 0; i < row.size(); ++i) {
                CAPTURE(name, layer, i);
                CHECK((*values)[layer * hidden + i] == Approx(row[i].get<float>()).epsilon(1e-4));
            }
        }
    }
}
