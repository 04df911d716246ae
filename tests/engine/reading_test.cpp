// Caches that read known tokens: a question, or the reference's answer.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "engine/decode/compare.h"
#include "engine/decode/decode.h"
#include "engine/prefill/prefill.h"
#include "tests/engine/counted_memory.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/fake_device.h"
#include "tests/engine/relative_difference.h"
#include "tests/engine/same_bits.h"
#include "tests/policies/throwaway_policies.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
using policies::Granularity;
using policies::Positions;

namespace {

constexpr int n_read = 140;

/// A kind of cache with rows of unequal length. Each call makes an equal one.
struct Kind {
    Granularity granularity = Granularity::kv_head;
    Positions positions = Positions::prompt;
    bool acts = false;
    bool whole = false;
    bool store = false;
};

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all{{.whole = true},
                                       {},
                                       {.granularity = Granularity::query_head},
                                       {.positions = Positions::cache},
                                       {.positions = Positions::cache, .acts = true},
                                       {.store = true},
                                       {.granularity = Granularity::query_head, .store = true}};
    return all;
}

engine::RunCache cache_of(const engine::Transformer& model, std::span<const int32_t> ids, const Kind& kind) {
    engine::SilentProgress progress;
    engine::PrefillRequest request;
    request.ids = ids;
    request.needs.entries = kind.store;
    const auto result = engine::prefill(model, request, nullptr, progress);
    engine::RunCache cache(kind.store ? model.on_processor() : model, kind.granularity, kind.positions, kind.acts);
    for (int layer = 0; layer < cache.n_layers(); ++layer) {
        const auto& dense = result.cache[static_cast<size_t>(layer)];
        if (kind.whole) {
            cache.adopt(layer, dense, n_read);
            continue;
        }
        policies::Selection selection;
        selection.granularity = kind.granularity;
        for (int row = 0; row < cache.n_rows(); ++row) {
            auto& kept = selection.rows.emplace_back();
            for (uint32_t i = 0; i < n_read; ++i)
                if ((i * 7u + static_cast<uint32_t>(3 * row + layer)) % static_cast<uint32_t>(4 + row) == 0 || i > 130)
                    kept.push_back(i);
        }
        if (!kind.store) {
            cache.compress(layer, selection, dense);
            continue;
        }
        // The entries of each row except the last keep every second channel of their keys.
        policies::StoredLayer& stored = selection.stored.emplace();
        for (const auto& kept : selection.rows) {
            const auto exact = kept.end() - 5;
            const auto channels = policies::throwaway::StoresChannels::channels(model.config().head_dim);
            policies::StoredEntries entries;
            entries.positions.assign(kept.begin(), exact);
            entries.keys.parts.push_back({.width = static_cast<int>(channels.size()), .channels = channels});
            entries.values.parts.push_back({.width = model.config().head_dim});
            stored.rows.push_back({{std::move(entries)}, {exact, kept.end()}, {}});
        }
        cache.compress(layer, selection, dense);
    }
    cache.reserve(200);
    return cache;
}

std::vector<float> row_of(const at::Tensor& rows, int64_t i) {
    const at::Tensor row = rows.select(0, i).cpu();
    return {row.const_data_ptr<float>(), row.const_data_ptr<float>() + row.numel()};
}

/// Reads the same question into caches of these kinds as one batch, and returns the last residual of each.
std::vector<std::vector<float>> read(const engine::Transformer& model, std::span<const int32_t> ids,
                                     std::span<const int32_t> question, const std::vector<Kind>& into) {
    engine::SilentProgress progress;
    std::vector<engine::RunCache> caches;
    for (const auto& kind : into) caches.push_back(cache_of(model, ids, kind));
    std::vector<engine::Sequence> sequences;
    for (auto& cache : caches) sequences.push_back({&cache, n_read});
    const std::vector<std::span<const int32_t>> tokens(into.size(), question);
    const at::Tensor last = engine::read_given_tokens(model, sequences, tokens, progress);
    std::vector<std::vector<float>> rows;
    for (size_t s = 0; s < into.size(); ++s) {
        REQUIRE(sequences[s].error.empty());
        CHECK(sequences[s].position == n_read + static_cast<int64_t>(question.size()));
        rows.push_back(row_of(last, static_cast<int64_t>(s)));
    }
    return rows;
}

/// Reads the question through the decode kernel, token by token.
std::vector<float> read_slowly(const engine::Transformer& model, std::span<const int32_t> ids,
                               std::span<const int32_t> question, const Kind& kind) {
    auto cache = cache_of(model, ids, kind);
    engine::Sequence sequence{&cache, n_read};
    std::vector<float> last;
    for (size_t t = 0; t < question.size(); ++t) {
        const auto token = question.subspan(t, 1);
        last = row_of(engine::feed_tokens(model, {&sequence, 1}, {&token, 1}), 0);
    }
    return last;
}

engine::Model model_of(const char* name, kernels::DType dtype) {
    engine::SilentProgress progress;
    return engine::Model::open(test_data(std::string("models/") + name), dtype, progress, engine::device_of_tests());
}

}  // namespace

TEST_CASE("reading a question at once equals reading it token by token, for every kind of cache") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window", "qwen2-sliding-yarn"}) {
        for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
            const auto model = model_of(name, dtype);
            const auto ids = some_ids(model, n_read), question = some_ids(model, 61, 5);
            for (size_t i = 0; i < kinds().size(); ++i) {
                CAPTURE(name, kernels::name_of(dtype), i);
                const auto& kind = kinds()[i];
                const auto found = read(model.transformer(), ids, question, {kind})[0];
                const auto expected = read_slowly(model.transformer(), ids, question, kind);
                CHECK(relative_difference(found, expected) < (dtype == kernels::DType::f32 ? 1e-5 : 0.02));
            }
        }
    }
}

TEST_CASE("reading depends neither on other runs nor on the number of tokens in a pass") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window"}) {
        for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
            CAPTURE(name, kernels::name_of(dtype));
            const auto model = model_of(name, dtype);
            const auto ids = some_ids(model, n_read), question = some_ids(model, 61, 5);
            // A pass has 1,024 tokens: 61 of one run, 17 of each of 60 runs, or one of each of 1,100 runs.
            std::vector<Kind> many;
            for (int i = 0; i < 60; ++i) many.push_back(kinds()[static_cast<size_t>(i) % kinds().size()]);
            const auto beside = read(model.transformer(), ids, question, many);
            for (size_t i = 0; i < kinds().size(); ++i) {
                const auto alone = read(model.transformer(), ids, question, {kinds()[i]})[0];
                for (size_t j = i; j < many.size(); j += kinds().size()) CHECK(same_bits(beside[j], alone));
            }
        }
    }
}

TEST_CASE("the comparison with full depends neither on other runs nor on the number of tokens in a pass") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window"}) {
        for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
            CAPTURE(name, kernels::name_of(dtype));
            const auto model = model_of(name, dtype);
            const auto& transformer = model.transformer();
            const auto ids = some_ids(model, n_read), answer = some_ids(model, 50, 6);
            engine::SilentProgress progress;
            auto full = cache_of(transformer, ids, {.whole = true});
            const std::vector<float> logits(static_cast<size_t>(transformer.config().vocab_size), 0.5f);
            const auto reference =
                engine::compute_full_reference(transformer, {&full, n_read}, logits, answer, progress);
            const auto compare = [&](const std::vector<Kind>& with) {
                std::vector<engine::RunCache> caches;
                for (const auto& kind : with) caches.push_back(cache_of(transformer, ids, kind));
                std::vector<engine::Sequence> sequences;
                for (auto& cache : caches) sequences.push_back({&cache, n_read});
                return engine::compare_with_full_run(transformer, reference, sequences,
                                                     std::vector<std::vector<float>>(with.size(), logits), progress);
            };
            std::vector<Kind> many;
            for (int i = 0; i < 60; ++i) many.push_back(kinds()[static_cast<size_t>(i) % kinds().size()]);
            const auto beside = compare(many);
            for (size_t i = 0; i < kinds().size(); ++i) {
                const auto alone = compare({kinds()[i]})[0];
                REQUIRE(alone.error.empty());
                for (size_t j = i; j < many.size(); j += kinds().size()) {
                    CHECK(same_bits(beside[j].step_kl, alone.step_kl));
                    CHECK(same_bits(beside[j].output_error, alone.output_error));
                }
            }
            // The full cache compared with itself.
            for (const float kl : beside[0].step_kl) CHECK(kl < 1e-6f);
            for (const float error : beside[0].output_error) CHECK(error == 0.0f);
        }
    }
}

TEST_CASE("reading a long question into many caches needs memory for one pass, not for all tokens") {
    const auto& model = tiny_model().transformer();
    const auto ids = some_ids(tiny_model(), n_read), question = some_ids(tiny_model(), 200, 5);
    engine::SilentProgress progress;
    std::vector<engine::RunCache> caches;
    for (int i = 0; i < 40; ++i) caches.push_back(cache_of(model, ids, {}));
    std::vector<engine::Sequence> sequences;
    for (auto& cache : caches) sequences.push_back({&cache, n_read});
    const std::vector<std::span<const int32_t>> tokens(caches.size(), question);
    CountedMemory memory;
    engine::read_given_tokens(model, sequences, tokens, progress);
    // Residual, queries, keys, values, outputs and MLP rows of 1,024 tokens, not of 8,000.
    const auto& config = model.config();
    const auto row = static_cast<size_t>(4 * config.hidden_size + 4 * config.intermediate_size +
                                         4 * (config.n_heads + 2 * config.n_kv_heads) * config.head_dim);
    CHECK(memory.most() < 1100 * row * sizeof(float));
}
