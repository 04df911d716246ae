#include "engine/decode/kl_of_dropped_tokens.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "engine/decode/answer_attention.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/fake_device.h"
#include "tests/engine/whole_cache.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

constexpr int64_t n_visible = 60, n_question = 7, n_answer = 9;

/// The full cache with a question, and its answer's reference.
struct Read {
    engine::RunCache cache;
    engine::FullReference reference;
    std::vector<float> attention;  // (L, G, N)
};

Read read_answer(const engine::Model& model) {
    const auto& transformer = model.transformer();
    const auto ids = some_ids(model, static_cast<int>(n_visible + n_question));
    const auto answer = some_ids(model, static_cast<int>(n_answer), 9);
    auto [cache, logits] = whole_cache(transformer, ids);
    cache.reserve(n_answer);
    const auto mark = cache.mark();
    engine::SilentProgress progress;
    engine::Sequence sequence{&cache, n_visible + n_question};
    auto reference = engine::compute_full_reference(transformer, sequence, logits, answer, progress);
    auto attention = engine::mean_over_groups(engine::answer_attention(transformer, cache, reference, n_visible),
                                              transformer.shape(), n_visible);
    for (int layer = 0; layer < cache.n_layers(); ++layer)
        reference.later_keys.push_back(engine::copy_keys_from_position(transformer, cache, layer, n_visible));
    cache.rewind(mark);
    return {std::move(cache), std::move(reference), std::move(attention)};
}

/// Returns a run whose rows keep every third token, or none.
trace::RunRecord keeping(const policies::ModelShape& shape, int rows_of_layer, bool any) {
    trace::RunRecord record;
    record.kept_offsets = {0};
    for (int row = 0; row < shape.n_layers * rows_of_layer; ++row) {
        for (uint32_t token = static_cast<uint32_t>(row) % 3; any && token < n_visible; token += 3)
            record.kept_indices.push_back(token);
        record.kept_offsets.push_back(record.kept_indices.size());
    }
    return record;
}

}  // namespace

TEST_CASE("with equal weights of all steps, KL-weighted attention lost is the answer's attention") {
    const std::string name = GENERATE("llama3-gqa-sharded", "mistral-window", "qwen2-biases");
    const auto dtype = GENERATE(kernels::DType::f32, kernels::DType::bf16);
    CAPTURE(name, name_of(dtype));
    engine::SilentProgress progress;
    const auto model = engine::Model::open(test_data("models/" + name), dtype, progress, engine::device_of_tests());
    const auto shape = model.transformer().shape();
    const Read read = read_answer(model);
    REQUIRE(read.reference.later_keys[0].size(1) == n_question + n_answer);
    const std::vector<float> even(n_answer, 1.0F);
    const auto none = keeping(shape, shape.n_kv_heads, false), third = keeping(shape, shape.n_kv_heads, true);
    const std::vector<engine::ComparedRun> runs{{none, even, shape.n_layers}, {third, even, shape.n_layers}};
    const auto lost = engine::attribute_kl_to_dropped_tokens(model.transformer(), read.cache, read.reference, n_visible,
                                                             runs, progress);
    const double g = shape.n_kv_heads;
    for (int layer = 0; layer < shape.n_layers; ++layer)
        for (int64_t token = 0; token < n_visible; ++token) {
            double all = 0, dropped = 0;
            for (int head = 0; head < shape.n_kv_heads; ++head) {
                const int row = layer * shape.n_kv_heads + head;
                const double weight = read.attention[static_cast<size_t>(row * n_visible + token)] / g;
                all += weight;
                if (token % 3 != row % 3) dropped += weight;
            }
            const auto i = static_cast<size_t>(layer * n_visible + token);
            CAPTURE(layer, token);
            CHECK(lost[0][i] == Approx(all).epsilon(1e-3).margin(1e-6));
            CHECK(lost[1][i] == Approx(dropped).epsilon(1e-3).margin(1e-6));
        }
}

TEST_CASE("KL-weighted attention lost is a sum over steps and does not depend on other runs") {
    engine::SilentProgress progress;
    const auto model = engine::Model::open(test_data("models/llama3-gqa-sharded"), kernels::DType::bf16, progress,
                                           engine::device_of_tests());
    const auto shape = model.transformer().shape();
    const Read read = read_answer(model);
    const auto of_query_heads = keeping(shape, shape.n_heads, true),
               of_kv_heads = keeping(shape, shape.n_kv_heads, true);
    std::vector<float> first(n_answer, 0.0F), second(n_answer, 0.0F), both(n_answer, 0.0F), of_prompt(n_answer, 0.0F);
    first[1] = both[1] = 0.25F;
    second[n_answer - 1] = both[n_answer - 1] = 2;
    of_prompt[0] = 5;
    const auto lost = [&](std::vector<engine::ComparedRun> runs) {
        return engine::attribute_kl_to_dropped_tokens(model.transformer(), read.cache, read.reference, n_visible, runs,
                                                      progress);
    };
    const auto all = lost({{of_query_heads, first, shape.n_layers},
                           {of_query_heads, second, shape.n_layers},
                           {of_query_heads, both, shape.n_layers},
                           {of_kv_heads, both, shape.n_layers},
                           {of_kv_heads, of_prompt, shape.n_layers}});
    for (size_t i = 0; i < all[0].size(); ++i) {
        CHECK(all[2][i] == Approx(all[0][i] + all[1][i]).margin(1e-9));
        CHECK(all[4][i] == 0);
    }
    CHECK(all[2] != all[3]);
    CHECK(lost({{of_kv_heads, both, shape.n_layers}})[0] == all[3]);
    // A divergence that is not finite leaves the result empty.
    both[2] = std::numeric_limits<float>::infinity();
    CHECK(lost({{of_kv_heads, both, shape.n_layers}, {of_kv_heads, first, shape.n_layers}})[0].empty());
}
