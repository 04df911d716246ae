// Caches that store entries in parts, compared with plain caches of the entries that the parts represent.
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/common/engine_error.h"
#include "engine/decode/decode.h"
#include "engine/prefill/prefill.h"
#include "kernels/bf16.h"
#include "tests/engine/reference_runs.h"
#include "tests/engine/relative_difference.h"
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

/// A policy's cache and a plain cache of the entries that it represents.
struct Caches {
    engine::RunCache stored, plain;
};

/// Returns the prompt's keys and values after storing: dropped channels are 0, and two merged tokens have their common
/// key and half its value each.
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
    const engine::DenseLayer here = dense.on_processor();
    engine::DenseLayer changed{here.keys.clone(), here.values.clone()};
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
    const auto policy = policies::throwaway::spec(of.policy).create();
    policies::RunContext context;
    context.shape = transformer.shape();
    context.n_tokens = n_prompt;
    context.budget = of.budget;
    policy->begin(context);
    const auto empty = [&] {
        return engine::RunCache(transformer.on_processor(), policies::Granularity::kv_head, policies::Positions::prompt,
                                false);
    };
    Caches caches{empty(), empty()};
    engine::SilentProgress progress;
    engine::PrefillRequest request;
    request.ids = ids;
    request.needs = policy->needs();
    request.needs.entries = true;
    const auto compress = [&](engine::PrefillLayer& layer) {
        auto selection = policy->select(layer.prompt);
        REQUIRE(selection.stored);
        caches.stored.compress(layer.layer, selection, layer.dense);
        const auto changed = stands_for(of.policy, layer.dense, transformer.dtype(), *selection.stored, selection);
        selection.stored.reset();
        caches.plain.compress(layer.layer, selection, changed);
    };
    engine::prefill(transformer, request, compress, progress);
    caches.stored.reserve(100);
    caches.plain.reserve(100);
    return caches;
}

std::vector<float> last_row(const at::Tensor& rows) {
    const at::Tensor row = rows.select(0, rows.size(0) - 1).cpu();
    return {row.const_data_ptr<float>(), row.const_data_ptr<float>() + row.numel()};
}

/// Reads a question after compression, then tokens one by one, and returns the last residual.
std::vector<float> answer(const engine::Model& model, engine::RunCache& cache, unsigned seed = 9) {
    engine::SilentProgress progress;
    const auto question = some_ids(model, 21, 5), tokens = some_ids(model, 6, seed);
    engine::Sequence sequence{&cache, n_prompt};
    const std::span<const int32_t> whole(question);
    engine::read_given_tokens(model.transformer(), {&sequence, 1}, {&whole, 1}, progress);
    REQUIRE(sequence.error.empty());
    std::vector<float> last;
    for (const int32_t& token : tokens) {
        const std::span<const int32_t> one(&token, 1);
        last = last_row(engine::feed_tokens(model.transformer(), {&sequence, 1}, {&one, 1}));
    }
    REQUIRE(sequence.error.empty());
    return last;
}

const std::vector<Case>& cases() {
    // A sliding window could separate the tokens of a pair.
    static const std::vector<Case> all{
        {"llama3-gqa-sharded", "stores-channels", 120}, {"llama3-gqa-sharded", "stores-mapped", 120},
        {"llama3-gqa-sharded", "merges-pairs", 61},     {"llama3-gqa-sharded", "stores-channels", 6},
        {"mistral-window", "stores-channels", 140},     {"mistral-window", "stores-mapped", 140},
        {"qwen2-sliding-yarn", "stores-channels", 140}, {"qwen2-sliding-yarn", "stores-mapped", 130},
        {"llama3-gqa-sharded", "stores-shared", 120},   {"mistral-window", "stores-shared", 140},
        {"qwen2-sliding-yarn", "stores-shared", 133}};
    return all;
}

}  // namespace

TEST_CASE("attention to stored parts equals attention to the entries that they represent") {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
        for (const auto& of : cases()) {
            CAPTURE(of.model, of.policy, kernels::name_of(dtype));
            const auto model = small_model(of.model, dtype);
            auto caches = caches_of(model, of);
            CHECK(caches.stored.stores_parts(0));
            const auto found = answer(model, caches.stored), expected = answer(model, caches.plain);
            CHECK(relative_difference(found, expected) < (dtype == kernels::DType::f32 ? 1e-5 : 0.02));
        }
    }
}

TEST_CASE("a cache stored in parts and its copies always give the same answers") {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
        for (const auto& of : cases()) {
            CAPTURE(of.model, of.policy, kernels::name_of(dtype));
            const auto model = small_model(of.model, dtype);
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

TEST_CASE("a cache stored in parts needs the memory that its description says") {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
        const auto model = small_model("llama3-gqa-sharded", dtype);
        const auto shape = model.transformer().shape();
        const size_t element = kernels::size_of(dtype), d = static_cast<size_t>(shape.head_dim);
        const auto heads = static_cast<size_t>(shape.n_kv_heads);
        const auto bytes = [&](const char* policy, int64_t budget) {
            return caches_of(model, {"", policy, budget}).stored.clone(7).layer_bytes(1);
        };
        // 112 of 120 keys with half of the channels.
        CHECK(bytes("stores-channels", 120) == heads * ((120 * 2 * d - 112 * d / 2) * element + d / 2 * 2));
        CHECK(bytes("stores-mapped", 120) == heads * 120 * 2 * d * element);
        // 59 even positions and 58 odd ones, which store only the length of their direction.
        CHECK(bytes("stores-shared", 120) == heads * (120 * 2 * d + 58 * 2) * element);
        CHECK(bytes("merges-pairs", 60) == heads * 60 * (2 * d * element + sizeof(float)));
    }
}

TEST_CASE("a cache that renumbers its entries refuses entries stored in parts") {
    const auto& model = tiny_model().transformer();
    engine::RunCache cache(model.on_processor(), policies::Granularity::kv_head, policies::Positions::cache, false);
    const auto dense = engine::DenseLayer::allocate(model.shape(), 4, model.scalar_type());
    policies::Selection selection;
    policies::StoredLayer& stored = selection.stored.emplace();
    for (int row = 0; row < model.shape().n_kv_heads; ++row) {
        selection.rows.push_back({0, 1});
        stored.rows.push_back({.stored = {}, .plain = {0, 1}, .token_entry = {}});
    }
    CHECK_THROWS_AS(cache.compress(0, selection, dense), engine::RunError);
}

namespace {

/// Returns a part with numbers of the dense entries on some channels: only these channels, or mapped to all d channels
/// with zeros elsewhere.
policies::StoredPart given(const policies::EntriesView& from, int head, const std::vector<uint32_t>& positions,
                           const std::vector<uint16_t>& channels, int d, bool mapped) {
    policies::StoredPart part{.width = static_cast<int>(channels.size())};
    for (const uint32_t position : positions)
        for (const uint16_t channel : channels)
            part.numbers.push_back(policies::throwaway::element(from, head, position, channel, d));
    if (!mapped) {
        part.channels = channels;
        return part;
    }
    policies::Matrix map{part.width, d, std::vector<float>(static_cast<size_t>(part.width * d))};
    for (size_t i = 0; i < channels.size(); ++i) map.numbers[i * static_cast<size_t>(d) + channels[i]] = 1;
    part.map = std::make_shared<const policies::Matrix>(std::move(map));
    return part;
}

/// Stores entries in all kinds of parts whose sums are the dense entries: entries 10 to 69 in two groups, the second
/// with an offset, and the others whole.
policies::StoredLayer in_parts(const engine::DenseLayer& dense, const policies::Selection& selection, int n_heads,
                               int d) {
    std::vector<uint16_t> low, high;
    for (int c = 0; c < d; ++c) (c < d / 3 ? low : high).push_back(static_cast<uint16_t>(c));
    const auto of = [&](std::vector<policies::StoredPart> parts) { return policies::StoredVectors{std::move(parts)}; };
    const policies::StoredPart gathered_low{.width = static_cast<int>(low.size()), .channels = low};
    const policies::StoredPart gathered_high{.width = static_cast<int>(high.size()), .channels = high};
    const auto less = [](policies::StoredPart part) {
        for (float& number : part.numbers) number -= 0.5f;
        return part;
    };
    std::vector<float> offset(static_cast<size_t>(d), 0.0f);
    for (const uint16_t channel : high) offset[channel] = 0.5f;
    policies::StoredLayer layer;
    for (size_t r = 0; r < selection.rows.size(); ++r) {
        const int head = static_cast<int>(r) * n_heads / static_cast<int>(selection.rows.size());
        const auto& kept = selection.rows[r];
        policies::StoredRow& row = layer.rows.emplace_back();
        const std::vector<uint32_t> first(kept.begin(), kept.begin() + 10),
            second(kept.begin() + 10, kept.begin() + 30), third(kept.begin() + 30, kept.begin() + 70);
        const auto keys = dense.keys_view(), values = dense.values_view();
        row.stored.push_back({.positions = first, .keys = of({{.width = d}}), .values = of({{.width = d}})});
        row.stored.push_back({.positions = second,
                              .masses = std::vector<float>(second.size(), 1.0f),
                              .keys = of({gathered_low, given(keys, head, second, high, d, true)}),
                              .values = of({given(values, head, second, low, d, false), gathered_high})});
        row.stored.push_back({.positions = third,
                              .keys = of({gathered_low, less(given(keys, head, third, high, d, false))}),
                              .values = of({given(values, head, third, low, d, true),
                                            less(given(values, head, third, high, d, true))})});
        row.stored.back().keys.offset = row.stored.back().values.offset = offset;
        row.plain.assign(kept.begin() + 70, kept.end());
    }
    return layer;
}

}  // namespace

TEST_CASE("parts of every kind are added, for KV heads and for query heads") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window"}) {
        for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
            for (const auto granularity : {policies::Granularity::kv_head, policies::Granularity::query_head}) {
                CAPTURE(name, kernels::name_of(dtype), granularity == policies::Granularity::kv_head);
                const auto model = small_model(name, dtype);
                const auto& transformer = model.transformer();
                const auto shape = transformer.shape();
                engine::SilentProgress progress;
                engine::PrefillRequest request;
                const auto ids = some_ids(model, n_prompt);
                request.ids = ids;
                request.needs.entries = true;
                const auto result = engine::prefill(transformer, request, nullptr, progress);
                const auto& processor = transformer.on_processor();
                engine::RunCache stored(processor, granularity, policies::Positions::prompt, false);
                engine::RunCache plain(processor, granularity, policies::Positions::prompt, false);
                for (int layer = 0; layer < shape.n_layers; ++layer) {
                    const auto& dense = result.cache[static_cast<size_t>(layer)];
                    policies::Selection selection;
                    selection.granularity = granularity;
                    for (int row = 0; row < stored.n_rows(); ++row) {
                        auto& kept = selection.rows.emplace_back();
                        for (uint32_t i = 0; i < n_prompt; ++i)
                            if ((i + static_cast<uint32_t>(row)) % 5 != 0) kept.push_back(i);
                    }
                    plain.compress(layer, selection, dense);
                    selection.stored = in_parts(dense, selection, shape.n_kv_heads, shape.head_dim);
                    stored.compress(layer, selection, dense);
                }
                stored.reserve(100);
                plain.reserve(100);
                const auto found = answer(model, stored), expected = answer(model, plain);
                CHECK(relative_difference(found, expected) < (dtype == kernels::DType::f32 ? 1e-5 : 0.02));
            }
        }
    }
}

TEST_CASE("entries after the first ones keep their masses, keys and values") {
    const int d = 4;
    std::vector<float> keys(7 * d), values(7 * d);
    for (size_t i = 0; i < keys.size(); ++i) {
        keys[i] = static_cast<float>(i);
        values[i] = static_cast<float>(100 + i);
    }
    policies::StoredEntries entries{.positions = {0, 2, 3, 5, 6},
                                    .masses = {1, 2, 3.5f, 4, 5},
                                    .keys = {{{.width = 2, .channels = {1, 3}}}},
                                    .values = {{{.width = d}}}};
    const engine::StoredSource source{.head_dim = d,
                                      .dtype = kernels::DType::f32,
                                      .keys = reinterpret_cast<const char*>(keys.data()),
                                      .values = reinterpret_cast<const char*>(values.data())};
    const engine::StoredEntries narrow(entries, source);
    CHECK(narrow.size() == 5);
    CHECK(narrow.own_bytes() == 5 * (2 + 4 + 1) * 4 + 2 * 2);
    const auto from_two = narrow.from(2);
    CHECK(from_two.row.n_entries == 3);
    CHECK(from_two.row.key_dim == 2);
    CHECK(from_two.row.cardinality[0] == 3.5f);
    CHECK(static_cast<const float*>(from_two.row.k)[0] == 13);       // position 3, channel 1
    CHECK(static_cast<const float*>(from_two.row.k)[3] == 23);       // position 5, channel 3
    CHECK(static_cast<const float*>(from_two.row.v)[4 + 2] == 122);  // position 5, channel 2
    CHECK(from_two.key_channels[1] == 3);

    entries.keys.parts.push_back({.width = 2, .channels = {0, 2}});
    const engine::StoredEntries whole(entries, source);
    const auto read = whole.from(3);
    REQUIRE(read.row.entries);
    CHECK(read.row.n_entries == 2);
    CHECK(read.row.cardinality[0] == 4);
    std::vector<float> k(2 * d), sums(d), scratch(read.row.entries->scratch_floats(1));
    read.row.entries->read_keys(0, 2, k.data());
    CHECK(k == std::vector<float>{20, 21, 22, 23, 24, 25, 26, 27});
    std::vector<float> weights{1, 10};
    read.row.entries->sum_values(0, 2, weights.data(), 1, scratch.data(), sums.data());
    CHECK(sums == std::vector<float>{1360, 1371, 1382, 1393});
    read.row.entries->read_keys(1, 2, k.data());
    CHECK(k[0] == 24);
}

TEST_CASE("a sequence whose cache throws in a batch does not change the others") {
    for (const bool given : {false, true}) {
        for (const char* policy : {"stores-channels", "stores-mapped", "stores-shared", "merges-pairs"}) {
            CAPTURE(given, policy);
            const auto& model = tiny_model();
            const auto tokens = some_ids(model, given ? 3 : 1, 8);
            const auto feed = [&](bool with_full_one) {
                auto caches = caches_of(model, {"", policy, 60});
                auto first = caches.stored.clone(8), full = caches.plain.clone(0), full_too = caches.stored.clone(0);
                std::vector<engine::Sequence> sequences{{&first, n_prompt}};
                if (with_full_one) sequences.push_back({&full, n_prompt}), sequences.push_back({&full_too, n_prompt});
                sequences.push_back({&caches.plain, n_prompt});
                const std::vector<std::span<const int32_t>> all(sequences.size(), tokens);
                const at::Tensor rows =
                    engine::feed_tokens(model.transformer(), sequences, all, {.given = given, .errors = {}});
                for (size_t s = 0; s < sequences.size(); ++s)
                    CHECK(sequences[s].failed() == (with_full_one && (s == 1 || s == 2)));
                const auto n = static_cast<int64_t>(tokens.size());
                return std::pair{last_row(rows.narrow(0, 0, n)), last_row(rows)};
            };
            const auto beside = feed(true), alone = feed(false);
            CHECK(same_bits(beside.first, alone.first));
            CHECK(same_bits(beside.second, alone.second));
        }
    }
}

TEST_CASE("each question finds a cache stored in parts unchanged") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    std::vector<engine::Prompt> both;
    for (const int length : {30, 6}) {
        auto ids = some_ids(model, 90);
        for (const int32_t id : some_ids(model, length, 3)) ids.push_back(id);
        both.push_back(prompt_of_ids(ids, 90));
    }
    std::vector<engine::RunPlan> plans;
    for (const char* name : {"stores-channels", "stores-mapped", "stores-shared", "merges-pairs"})
        plans.push_back({policies::throwaway::spec(name), policies::parse_budget("40")});
    for (const bool isolated : {false, true}) {
        CAPTURE(isolated);
        const auto options = options_of(8, true, isolated);
        const std::string mode = isolated ? "i" : "s";
        const auto together = run_experiment(folder, mode + "2.h5", model, both, plans, options);
        const auto alone = run_experiment(folder, mode + "1.h5", model, {both[1]}, plans, options);
        for (int run = 0; run < alone.n_runs(0); ++run) {
            const auto found = together.run_record(1, run), expected = alone.run_record(0, run);
            CAPTURE(found.label, found.message);
            CHECK(found.status == "complete");
            CHECK(found.output_ids == expected.output_ids);
            CHECK(same_bits(found.step_kl, expected.step_kl));
            CHECK(same_bits(found.output_error, expected.output_error));
            CHECK(found.cache_bytes == expected.cache_bytes);
        }
    }
}

// Reference: brute force by transformers and NumPy in f64 (scripts/golden/stored_runs.py).
TEST_CASE("ThinK has the reference's output, and its bytes are those of fewer channels",
          "[arithmetic][default_model]") {
    const auto shape = default_model_f32().transformer().shape();
    const auto d = static_cast<size_t>(shape.head_dim);
    const auto plan_of = [](const nlohmann::json& one) {
        auto made = plan(one["policy"].get<std::string>(), "100%");
        made.budget.share = *made.spec.own_share();
        return made;
    };
    for_each_reference_run("engine/stored_runs.json", plan_of, [&](const ReferenceRun& of) {
        const trace::RunRecord& record = of.record;
        CHECK(record.budget_of == "bytes");
        size_t row = 0;
        for (const auto& layer : of.reference["channels"])
            for (const auto& dropped : layer) {
                std::vector<uint8_t> expected(d, 1);
                for (const auto& channel : dropped) expected[channel.get<size_t>()] = 0;
                const auto first = record.channels_kept.begin() + static_cast<std::ptrdiff_t>(row * d);
                CHECK(std::vector<uint8_t>(first, first + static_cast<std::ptrdiff_t>(d)) == expected);
                ++row;
            }
        check_all_near(record.stored_key_error, flat_rows(of.reference["key_error"]), 1e-4, 0);
        CHECK(record.stored_value_error == std::vector<float>(row, 0.0f));
        check_all_near(record.output_error, flat_rows(of.reference["output_error"]), 1e-3, 1e-6);
        CHECK(record.cache_bytes == record.cache_bytes_predicted);
        const auto full = of.reader.run_record(0, 0).cache_bytes;
        const size_t kept = d - of.reference["channels"][0][0].size();
        const auto pruned = of.n_tokens - static_cast<size_t>(of.plan.spec.values.integer("recent"));
        const auto heads = static_cast<size_t>(shape.n_kv_heads);
        CHECK(full[0] - record.cache_bytes[0] == heads * (pruned * (d - kept) * sizeof(float) - kept * 2));
    });
}
