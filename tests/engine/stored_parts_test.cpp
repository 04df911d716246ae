// Caches that hold something else than whole keys and values, against plain ones that hold what it stands for.
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/decode.h"
#include "engine/error.h"
#include "engine/prefill.h"
#include "kernels/bf16.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/same_bits.h"
#include "tests/engine/threads.h"
#include "tests/policies/throwaway_policies.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

constexpr int n_prompt = 140;

struct Case {
    const char* model;
    const char* policy;
    int64_t budget;
};

/// What the policy stores, and a plain cache of what that stands for.
struct Caches {
    engine::RunCache stored, plain;
};

/// The prompt's keys and values as the policy's entries have them: channels that it drops are 0, two tokens that are
/// one entry are both its key and half its value.
template <class T>
void change(const std::string& policy, const policies::StoredEntries& entries, int64_t d, T* keys, T* values) {
    for (const uint32_t position : entries.positions) {
        T *key = keys + position * d, *value = values + position * d;
        for (int64_t c = 0; c < d; ++c) {
            if (policy == "stores-channels" && c % 2 == 1) key[c] = T{};
            if (policy != "merges-pairs") continue;
            const auto sum = [&](const T* vector) {
                return kernels::to_float(vector[c]) + kernels::to_float(vector[c - d]);
            };
            key[c] = key[c - d] = kernels::from_float<T>(0.5f * sum(key));
            value[c] = value[c - d] =
                kernels::from_float<T>(0.5f * kernels::to_float(kernels::from_float<T>(sum(value))));
        }
    }
}

engine::DenseLayer stands_for(const std::string& policy, const engine::DenseLayer& dense, kernels::DType dtype,
                              const policies::StoredLayer& stored, policies::Selection& selection) {
    engine::DenseLayer changed{dense.keys.clone(), dense.values.clone()};
    const int64_t d = dense.keys.size(2);
    for (size_t row = 0; row < stored.rows.size(); ++row) {
        const int64_t first = static_cast<int64_t>(row) * dense.capacity() * d;
        for (const auto& entries : stored.rows[row].stored) {
            if (dtype == kernels::DType::f32)
                change(policy, entries, d, static_cast<float*>(changed.keys.data_ptr()) + first,
                       static_cast<float*>(changed.values.data_ptr()) + first);
            else
                change(policy, entries, d, static_cast<kernels::bf16*>(changed.keys.data_ptr()) + first,
                       static_cast<kernels::bf16*>(changed.values.data_ptr()) + first);
        }
        if (policy != "merges-pairs") continue;
        const uint32_t last = selection.rows[row].back();
        selection.rows[row] = policies::throwaway::all_of(int64_t{last} + 1);
    }
    return changed;
}

Caches caches_of(const engine::Model& model, const Case& of) {
    const auto& transformer = model.transformer();
    const auto ids = some_ids(model, n_prompt);
    engine::SilentProgress progress;
    engine::PrefillRequest request;
    request.ids = ids;
    const auto result = engine::prefill(transformer, request, nullptr, progress);
    const auto policy = policies::throwaway::spec(of.policy).create();
    policies::RunContext context;
    context.shape = transformer.shape();
    context.n_tokens = n_prompt;
    context.budget = of.budget;
    policy->begin(context);
    const auto empty = [&] {
        return engine::RunCache(transformer, policies::Granularity::kv_head, policies::Positions::prompt, false);
    };
    Caches caches{empty(), empty()};
    for (int layer = 0; layer < caches.plain.n_layers(); ++layer) {
        const auto& dense = result.cache[static_cast<size_t>(layer)];
        policies::LayerObservations observations;
        observations.layer = layer;
        observations.shape = transformer.shape();
        observations.n_tokens = n_prompt;
        observations.keys = dense.keys_view();
        observations.values = dense.values_view();
        auto selection = policy->select(observations);
        const auto stored = policy->store(observations, selection);
        REQUIRE(stored);
        caches.stored.compress(layer, selection, *stored, dense);
        const auto changed = stands_for(of.policy, dense, transformer.dtype(), *stored, selection);
        caches.plain.compress(layer, selection, changed);
    }
    caches.stored.reserve(100);
    caches.plain.reserve(100);
    return caches;
}

std::vector<float> last_row(const at::Tensor& rows) {
    const float* data = rows.const_data_ptr<float>() + (rows.size(0) - 1) * rows.size(1);
    return {data, data + rows.size(1)};
}

/// A question read behind the compression, then tokens one by one: the last residual.
std::vector<float> answer(const engine::Model& model, engine::RunCache& cache, unsigned seed = 9) {
    engine::SilentProgress progress;
    const auto question = some_ids(model, 21, 5), tokens = some_ids(model, 6, seed);
    engine::Sequence sequence{&cache, n_prompt};
    const std::span<const int32_t> whole(question);
    engine::read_given(model.transformer(), {&sequence, 1}, {&whole, 1}, progress);
    REQUIRE(sequence.error.empty());
    std::vector<float> last;
    for (const int32_t& token : tokens) {
        const std::span<const int32_t> one(&token, 1);
        last = last_row(engine::feed(model.transformer(), {&sequence, 1}, {&one, 1}));
    }
    REQUIRE(sequence.error.empty());
    return last;
}

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        difference += std::pow(double{a[i]} - double{b[i]}, 2);
        size += std::pow(double{b[i]}, 2);
    }
    return std::sqrt(difference / size);
}

engine::Model open(const char* name, kernels::DType dtype) {
    engine::SilentProgress progress;
    return engine::Model::open(test_data(std::string("models/") + name), dtype, progress);
}

const std::vector<Case>& cases() {
    // Where a window slides, the two tokens of a pair would leave it one after the other.
    static const std::vector<Case> all{
        {"llama3-gqa-sharded", "stores-channels", 120}, {"llama3-gqa-sharded", "stores-mapped", 120},
        {"llama3-gqa-sharded", "merges-pairs", 61},     {"llama3-gqa-sharded", "stores-channels", 6},
        {"mistral-window", "stores-channels", 140},     {"mistral-window", "stores-mapped", 140},
        {"qwen2-sliding-yarn", "stores-channels", 140}, {"qwen2-sliding-yarn", "stores-mapped", 130}};
    return all;
}

}  // namespace

TEST_CASE("a cache attends to what it stores as a plain one does to what that stands for") {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
        for (const auto& of : cases()) {
            CAPTURE(of.model, of.policy, kernels::name_of(dtype));
            const auto model = open(of.model, dtype);
            auto caches = caches_of(model, of);
            CHECK(caches.stored.stores_parts(0));
            const auto found = answer(model, caches.stored), expected = answer(model, caches.plain);
            CHECK(relative_difference(found, expected) < (dtype == kernels::DType::f32 ? 1e-5 : 0.02));
        }
    }
}

TEST_CASE("a cache that is stored in parts answers alike again and again, its copies beside it") {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
        for (const auto& of : cases()) {
            CAPTURE(of.model, of.policy, kernels::name_of(dtype));
            const auto model = open(of.model, dtype);
            auto cache = caches_of(model, of).stored;
            const auto mark = cache.mark();
            const auto bytes = cache.layer_bytes(0);
            auto copy = cache.clone(100);
            const auto first = answer(model, cache);
            cache.rewind(mark);
            CHECK(cache.layer_bytes(0) == bytes);
            CHECK(!same_bits(answer(model, cache, 10), first));
            CHECK(same_bits(answer(model, copy), first));
            cache.rewind(mark);
            const Threads one(1);
            CHECK(same_bits(answer(model, cache), first));
        }
    }
}

TEST_CASE("what a cache holds in parts is what its description says it takes") {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
        const auto model = open("llama3-gqa-sharded", dtype);
        const auto shape = model.transformer().shape();
        const size_t element = kernels::size_of(dtype), d = static_cast<size_t>(shape.head_dim);
        const auto heads = static_cast<size_t>(shape.n_kv_heads);
        const auto bytes = [&](const char* policy, int64_t budget) {
            return caches_of(model, {"", policy, budget}).stored.clone(7).layer_bytes(1);
        };
        // 112 of 120 keys on half of the channels.
        CHECK(bytes("stores-channels", 120) == heads * ((120 * 2 * d - 112 * d / 2) * element + d / 2 * 2));
        CHECK(bytes("stores-mapped", 120) == heads * 120 * 2 * d * element);
        CHECK(bytes("merges-pairs", 60) == heads * 60 * (2 * d * element + sizeof(float)));
    }
}

TEST_CASE("a cache that renumbers its entries refuses those that are stored in parts") {
    const auto& model = tiny_model().transformer();
    engine::RunCache cache(model, policies::Granularity::kv_head, policies::Positions::cache, false);
    const auto dense = engine::DenseLayer::allocate(model.shape(), 4, model.scalar_type());
    policies::Selection selection;
    policies::StoredLayer stored;
    for (int row = 0; row < model.shape().n_kv_heads; ++row) {
        selection.rows.push_back({0, 1});
        stored.rows.push_back({.stored = {}, .plain = {0, 1}});
    }
    CHECK_THROWS_AS(cache.compress(0, selection, stored, dense), engine::RunError);
}
