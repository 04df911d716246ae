// KVSlimmer merges decoded tokens, compared with scripts/golden/kvslimmer.py and by invariants.
#include "engine/decode/decode_merging.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "engine/common/engine_error.h"
#include "engine/decode/decode.h"
#include "engine/prefill/chunked_reading.h"
#include "tests/engine/reference_runs.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

/// A run after its prompt, ready to decode.
struct Read {
    policies::CreatedPolicy policy;
    engine::RunCache cache;
    int64_t n_tokens;

    /// Feeds tokens one by one. @param n_fed number of tokens fed before
    void feed(const engine::Model& model, std::span<const int32_t> tokens, int64_t n_fed = 0) {
        engine::Sequence sequence{&cache, n_tokens + n_fed, n_fed, engine::after_attention_of(policy)};
        for (const int32_t& token : tokens) {
            const std::span<const int32_t> one(&token, 1);
            engine::feed_tokens(model.transformer(), {&sequence, 1}, {&one, 1});
            REQUIRE(sequence.error.empty());
        }
    }
};

Read read(const engine::Model& model, std::span<const int32_t> ids, const std::string& text, int64_t budget) {
    const auto& transformer = model.transformer();
    policies::RunContext context;
    context.shape = transformer.shape();
    context.n_tokens = static_cast<int64_t>(ids.size());
    context.budget = budget;
    Read read{policies::parse_policy(text).create(),
              engine::RunCache(transformer.on_processor(), policies::Granularity::kv_head, policies::Positions::prompt,
                               false),
              context.n_tokens};
    read.policy->begin(context);
    auto* own_cache = read.policy.as<policies::ReadsThroughOwnCache>();
    engine::ChunkedRun run{
        .policy = own_cache, .label = text, .budget = budget, .reading = own_cache->reading(context)};
    run.reading.chunk = std::min(run.reading.chunk, context.n_tokens);
    engine::SilentProgress progress;
    engine::read_in_chunks(transformer, ids, {&run, 1}, progress);
    for (int layer = 0; layer < context.shape.n_layers; ++layer) {
        const auto& entries = run.layers[static_cast<size_t>(layer)];
        const auto selection = engine::selection_of_merged_layer(transformer, context.n_tokens, entries);
        if (selection.stored)
            read.cache.hold(layer, selection, context.n_tokens);
        else
            read.cache.compress(layer, selection, engine::to_dense_layer(transformer, entries));
    }
    read.cache.reserve(100);
    return read;
}

/// Returns sums (G d) over the first n entries.
std::vector<double> value_sums(const engine::HeldLayer& held, int64_t n) {
    const at::Tensor values = held.values.to(at::kFloat).contiguous();
    const int64_t d = values.size(2);
    std::vector<double> sums(static_cast<size_t>(values.size(0) * d));
    for (int64_t head = 0; head < values.size(0); ++head)
        for (int64_t i = 0; i < n; ++i)
            for (int64_t c = 0; c < d; ++c)
                sums[static_cast<size_t>(head * d + c)] +=
                    double{values.const_data_ptr<float>()[(head * values.size(1) + i) * d + c]};
    return sums;
}

double sum(const std::vector<float>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

}  // namespace

TEST_CASE("after every chunk of decoded tokens, older entries are merged back to the budget", "[kvslimmer]") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window", "qwen2-sliding-yarn", "qwen3-qk-norm"})
        for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
            CAPTURE(name, kernels::name_of(dtype));
            const auto model = small_model(name, dtype);
            const auto ids = some_ids(model, 90), tokens = some_ids(model, 40, 7);
            auto run = read(model, ids, "kvslimmer:sinks=2,chunk=8,decode_merge=on", 30);
            REQUIRE(run.cache.n_entries(0, 0) == 30);
            run.feed(model, std::span(tokens).first(8));
            CHECK(run.cache.n_entries(1, 0) == 30 + 8);  // the older entries did not exceed the budget
            run.feed(model, std::span(tokens).subspan(8, 7), 8);
            const auto before = run.cache.held(1);
            CHECK(before.positions.size() == 30 + 15);
            run.feed(model, std::span(tokens).subspan(15, 1), 15);
            const auto after = run.cache.held(1);
            REQUIRE(after.positions.size() == 30 + 8);
            CHECK(run.cache.n_plain(1, 0) == 8);
            CHECK(sum(after.masses) == 90 + 16);
            for (uint32_t i = 0; i < 8; ++i) {
                CHECK(after.positions[30 + i] == 98 + i);
                CHECK(after.masses[30 + i] == 1);
            }
            for (size_t i = 0; i < 2; ++i) CHECK(after.masses[i] == 1);
            double total = 0;  // an entry's position is that of its last token
            for (size_t i = 0; i < after.positions.size(); ++i) {
                total += double{after.masses[i]};
                CHECK(after.positions[i] == static_cast<uint32_t>(total) - 1);
            }
            // All entries except that of the last token.
            const auto x = value_sums(before, 45), y = value_sums(after, 37);
            for (size_t c = 0; c < x.size(); ++c)
                CHECK(y[c] == Approx(x[c]).epsilon(1e-4).margin(dtype == kernels::DType::f32 ? 1e-4 : 0.3));
            auto copy = Read{{}, run.cache.clone(20), run.n_tokens};
            std::swap(copy.policy, run.policy);
            copy.feed(model, std::span(tokens).subspan(16, 24), 16);
            CHECK(copy.cache.n_entries(0, 0) == 38);
            CHECK(run.cache.held(1).positions == after.positions);
        }
}

TEST_CASE("a question that was read after compression is not merged and not counted in the budget", "[kvslimmer]") {
    constexpr int64_t n = 90, n_question = 12;
    for (const char* name : {"llama3-gqa-sharded", "mistral-window"})
        for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
            CAPTURE(name, kernels::name_of(dtype));
            const auto model = small_model(name, dtype);
            const auto ids = some_ids(model, n), tokens = some_ids(model, 40, 7);
            auto run = read(model, ids, "kvslimmer:sinks=2,chunk=8,decode_merge=on", 30);
            engine::Sequence sequence{&run.cache, n};
            const std::span<const int32_t> question = std::span(tokens).first(n_question);
            engine::SilentProgress progress;
            engine::read_given_tokens(model.transformer(), {&sequence, 1}, {&question, 1}, progress);
            run.n_tokens = n + n_question;
            run.feed(model, std::span(tokens).subspan(n_question, 15));
            CHECK(run.cache.n_entries(0, 0) == 30 + n_question + 15);
            const auto before = run.cache.held(0);
            run.feed(model, std::span(tokens).subspan(n_question + 15, 1), 15);
            const auto after = run.cache.held(0);
            REQUIRE(after.positions.size() == 30 + n_question + 8);
            CHECK(sum(after.masses) == n + n_question + 16);
            const auto place_of_question = [&](const engine::HeldLayer& held) {
                const auto found = std::find(held.positions.begin(), held.positions.end(), uint32_t{n});
                REQUIRE(found != held.positions.end());
                return found - held.positions.begin();
            };
            const int64_t from = place_of_question(before), to = place_of_question(after);
            CHECK(after.positions[static_cast<size_t>(to) - 1] == n - 1);
            for (int64_t i = 0; i < n_question; ++i) {
                CHECK(after.positions[static_cast<size_t>(to + i)] == n + i);
                CHECK(after.masses[static_cast<size_t>(to + i)] == 1);
            }
            CHECK(before.keys.narrow(1, from, n_question).equal(after.keys.narrow(1, to, n_question)));
            CHECK(before.values.narrow(1, from, n_question).equal(after.values.narrow(1, to, n_question)));
        }
}

TEST_CASE("a budget that is never exceeded does not change decoding", "[kvslimmer]") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto reader = run_experiment(
        folder, "m.h5", model, {prompt_of_ids(some_ids(model, 60))},
        {plan("kvslimmer:chunk=8,decode_merge=on", "100"), plan("kvslimmer:chunk=8", "100"),
         plan("kvslimmer:chunk=8,sinks=2", "30"), plan("kvslimmer:chunk=8,sinks=2,decode_merge=on", "30"),
         plan("kvslimmer:weights=published,decode_merge=on", "40"), plan("kvslimmer:sinks=64,decode_merge=on", "65")},
        options_of(30, true));
    const auto never = reader.run_record(0, 1), off = reader.run_record(0, 2);
    CHECK(never.output_ids == off.output_ids);
    CHECK(same_bits(never.step_kl, off.step_kl));
    const auto whole = reader.run_record(0, 3), merged = reader.run_record(0, 4);
    REQUIRE(merged.status == "complete");
    // The first merge is after the sixteenth fed token.
    for (size_t step = 0; step < merged.step_kl.size(); ++step)
        CHECK((merged.step_kl[step] == whole.step_kl[step]) == (step <= 16));
    CHECK(reader.run_record(0, 6).status == "failed");
    CHECK_THAT(reader.run_record(0, 6).message, Catch::Matchers::Contains("no entries to merge decoded tokens into"));
    CHECK(reader.run_record(0, 5).status == "failed");
    CHECK_THAT(reader.run_record(0, 5).message, Catch::Matchers::Contains("does not merge during decoding"));
}

TEST_CASE("merging while decoding depends neither on the mode nor on other runs", "[kvslimmer]") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window"})
        for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
            CAPTURE(name, kernels::name_of(dtype));
            const auto model = small_model(name, dtype);
            const std::vector<engine::RunPlan> plans{plan("kvslimmer:sinks=2,chunk=3,decode_merge=on", "40"),
                                                     plan("snapkv:window=8", "40"),
                                                     plan("kvslimmer:sinks=2,chunk=2,decode_merge=on", "30")};
            const TemporaryFolder folder;
            const std::vector<engine::Prompt> prompts{prompt_of_ids(some_ids(model, 100)),
                                                      prompt_of_ids(some_ids(model, 90, 4), 80)};
            const auto shared = run_experiment(folder, "s.h5", model, prompts, plans, options_of(14, true));
            const auto isolated = run_experiment(folder, "i.h5", model, prompts, plans, options_of(14, true, true));
            const auto alone = run_experiment(folder, "a.h5", model, {prompts[1]}, {plans[2]}, options_of(14, true));
            for (int prompt = 0; prompt < 2; ++prompt)
                for (const int run : {1, 3}) {
                    const auto a = shared.run_record(prompt, run), b = isolated.run_record(prompt, run);
                    CAPTURE(a.label, a.message, b.message);
                    REQUIRE(a.status == "complete");
                    CHECK(a.output_ids == b.output_ids);
                    CHECK(same_bits(a.step_kl, b.step_kl));
                    CHECK(same_bits(a.output_error, b.output_error));
                }
            CHECK(same_bits(alone.run_record(0, 1).step_kl, shared.run_record(1, 3).step_kl));
        }
}

TEST_CASE("merges while the full answer is read equal the reference", "[kvslimmer][arithmetic][default_model]") {
    const auto& model = default_model_f32();
    const auto golden_runs = golden("engine/chunked_runs.json")["prompts"];
    const auto full_runs = golden("engine/runs.json")["prompts"];
    const auto prompt_ids = golden("engine/prompt_ids.json")["prompts"];
    int n_cases = 0;
    for (const std::string name : {"short", "rewrite"})
        for (const auto& one : golden_runs[name]) {
            if (!one.contains("decode_masses")) continue;
            ++n_cases;
            const std::string policy = one["policy"];
            CAPTURE(name, policy);
            auto run = read(model, prompt_ids[name]["ids"].get<std::vector<int32_t>>(), policy, one["budget"]);
            run.feed(model, full_runs[name]["full"]["output_ids"].get<std::vector<int32_t>>());
            for (int layer = 0; layer < run.cache.n_layers(); ++layer)
                CHECK(run.cache.n_entries(layer, 0) ==
                      one["decode_entries"][static_cast<size_t>(layer)].get<int64_t>());
            for (const auto& [layer, masses] : one["decode_masses"].items())
                CHECK(run.cache.held(std::stoi(layer)).masses == masses.get<std::vector<float>>());
        }
    CHECK(n_cases == 2);
}
