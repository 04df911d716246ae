#include "engine/common/memory.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "engine/deduplicated_scores.h"
#include "tests/engine/counted_memory.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/same_bits.h"
#include "tests/engine/whole_cache.h"
#include "tests/policies/echo_maps_file.h"
#include "tests/sanitized.h"
#include "tests/skip.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

size_t cache_bytes(const engine::Model& model, int64_t n) {
    const auto shape = model.transformer().shape();
    return static_cast<size_t>(2 * shape.n_layers * shape.n_kv_heads * shape.head_dim * n) * sizeof(float);
}

}  // namespace

TEST_CASE("the full cache is never copied: space for question and answer is reserved from the start", "[processor]") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    constexpr int n = 400, n_question = 30;
    std::vector<engine::Prompt> prompts;
    for (const unsigned seed : {2u, 3u}) {
        auto ids = some_ids(model, n);
        for (const int32_t id : some_ids(model, n_question, seed)) ids.push_back(id);
        prompts.push_back(prompt_of_ids(ids, n));
    }
    const struct {
        const char* name;
        bool isolated, keep;
    } cases[] = {{"shared", false, false}, {"kept", false, true}, {"isolated", true, false}};
    for (const auto& one : cases) {
        CAPTURE(one.name);
        CountedMemory memory;
        auto options = options_of(12, true, one.isolated);
        options.keep_prefill = options.keep_caches = one.keep;
        Session session(folder, std::string(one.name) + ".h5", model, prompts, {plan("full", "100%")}, options);
        const size_t before = memory.now();
        session.experiment.on_kept = [&](int, int, const trace::RunRecord& record) {
            // The cache with a little more, but without the space that the record does not count.
            CHECK(memory.now() - before >= cache_bytes(model, n));
            CHECK(memory.now() - before < cache_bytes(model, n) * 3 / 2);
            size_t measured = 0;
            for (const auto bytes : record.cache_bytes) measured += bytes;
            CHECK(measured == cache_bytes(model, n));
            CHECK(record.cache_bytes == record.cache_bytes_predicted);
            memory.forget_most();
        };
        // Reading the answer back holds its attention and logits, but no second cache.
        session.experiment.run(session.prompts);
        CHECK(memory.most() - before < cache_bytes(model, n) * 7 / 4);
    }
}

TEST_CASE("a cache with enough space is not copied, and a copy has the requested space at once", "[processor]") {
    const auto& model = tiny_model().transformer();
    constexpr int64_t n = 300, room = 20;
    const auto ids = some_ids(tiny_model(), n);
    engine::SilentProgress progress;
    engine::PrefillRequest request;
    request.ids = ids;
    request.room = room;
    const auto result = engine::prefill(model, request, nullptr, progress);
    engine::RunCache cache(model, policies::Granularity::kv_head, policies::Positions::prompt, false);
    for (size_t layer = 0; layer < result.cache.size(); ++layer)
        cache.adopt(static_cast<int>(layer), result.cache[layer], n);
    engine::RunCache::Scratch scratch;
    const auto keys_of = [&](const engine::RunCache& of) { return of.view(0, 0, n, 0, 0, scratch).keys; };
    const size_t whole = cache_bytes(tiny_model(), n);
    CountedMemory memory;
    cache.reserve(room);
    CHECK(memory.most() == 0);
    CHECK(keys_of(cache) == result.cache[0].keys.data_ptr());
    const auto copy = cache.clone(room);
    CHECK(memory.most() == cache_bytes(tiny_model(), n + room));
    size_t held = 0;
    for (int layer = 0; layer < copy.n_layers(); ++layer) held += copy.layer_bytes(layer);
    CHECK(held == whole);
    cache.reserve(room + 1);
    CHECK(keys_of(cache) != result.cache[0].keys.data_ptr());
}

TEST_CASE("scores that do not depend on the budget are stored once for all budgets") {
    const auto& model = tiny_model();
    const engine::Prompt prompt = prompt_of_ids(some_ids(model, 200));
    engine::DeduplicatedScores pool;
    const float nan = std::nanf("");
    const auto a = pool.keep(std::vector<float>{1, nan, 2});
    CHECK(pool.keep(std::vector<float>{1, nan, 2}) == a);
    CHECK(pool.keep(std::vector<float>{1, nan, 3}) != a);
    CHECK(pool.keep(std::vector<double>{1, 2})->size() == 2);
    const policies::Scores<float> scores = a ? *a : std::vector<float>{};
    CHECK(pool.keep(scores) == a);
    CHECK(pool.keep(std::vector<float>(100'000, 1.0f)) != pool.keep([] {
        std::vector<float> all(100'000, 1.0f);
        all[777] = 2.0f;  // between the positions that the hash reads
        return all;
    }()));
    const std::weak_ptr<const std::vector<float>> unused = pool.keep(std::vector<float>{4});
    CHECK(unused.expired());  // unused scores are released
}

TEST_CASE("runs of one policy at several budgets share their scores in memory and in the trace") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    std::vector<engine::RunPlan> plans;
    for (const char* budget : {"30", "40", "50", "60"}) {
        plans.push_back(plan("snapkv:window=8", budget));
        plans.push_back(plan("k-vec:window=8", budget));  // its scores depend on the budget
    }
    const auto prompt = prompt_of_ids(some_ids(model, 480));
    const auto together = run_experiment(folder, "t.h5", model, {prompt}, plans, options_of(2, false));
    const auto one = run_experiment(folder, "o.h5", model, {prompt}, {plans[0]}, options_of(2, false));
    const auto own = one.run_record(0, 1).scores;
    REQUIRE(!own.empty());
    for (const int run : {1, 3, 5, 7}) {
        const auto shared = together.run_record(0, run).scores;
        REQUIRE(shared.size() == own.size());
        CHECK(same_bits(shared, own));
    }
    CHECK(together.run_record(0, 2).scores != together.run_record(0, 4).scores);
}

namespace {

/// Returns the memory in use, without freed memory.
uint64_t in_memory() {
    engine::reset_peak_memory();
    return engine::resident_bytes();
}

}  // namespace

TEST_CASE("the additional memory of a longer prompt equals the records of its caches",
          "[alone][arithmetic][default_model]") {
    if (kvscope::tests::sanitized) KVSCOPE_SKIP("a sanitizer keeps memory that was freed");
    const auto& model = default_model_f32();
    const auto shape = model.transformer().shape();
    const policies::test::EchoMapsFile maps({shape.n_layers, shape.n_kv_heads, shape.head_dim, 2, 0},
                                            model.fingerprint());
    const auto ids = golden("engine/prompt_ids.json")["prompts"]["demo"]["ids"].get<std::vector<int32_t>>();
    auto options = options_of(1);
    options.keep_caches = true;
    options.compare = options.record = false;
    struct Taken {
        double resident = 0, full = 0, recorded = 0;
    };
    // The memory of the full cache and of the policy's.
    const auto taken_by = [&](const std::string& policy, size_t n) {
        const auto spec = policy.starts_with("echokv") ? policy + ":recent=16,maps=" + maps.path() : policy;
        engine::SilentProgress progress;
        std::map<int, uint64_t> held;
        const uint64_t before = in_memory();
        std::vector<std::unique_ptr<engine::Conversation>> caches;
        {
            engine::Experiment experiment(model, engine::with_full_run_first({plan(spec, "60%")}), options, progress);
            experiment.on_run = [&](int, int run, const trace::RunRecord& record) {
                CAPTURE(record.label, record.message);
                REQUIRE(record.status == "complete");
                held[run] = std::accumulate(record.cache_bytes.begin(), record.cache_bytes.end(), uint64_t{0});
            };
            experiment.run(std::vector{prompt_of_ids({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)})});
            caches = experiment.take_caches();
        }
        Taken taken{static_cast<double>(in_memory() - before), static_cast<double>(held[0])};
        for (const auto& [run, bytes] : held) taken.recorded += static_cast<double>(bytes);
        return taken;
    };
    taken_by("full", 800);  // memory that the first run of all leaves behind
    for (const std::string policy : {"full", "think:ratio=0.6", "palu:rank_share=0.5,whitening=on", "minicache",
                                     "commonkv:recent=16", "kvslimmer:chunk=100", "echokv", "echokv-hybrid"}) {
        taken_by(policy, 64);  // memory that is used once for each model
        const Taken few = taken_by(policy, 300), many = taken_by(policy, 800);
        CAPTURE(policy, many.recorded, many.resident);
        const double more = many.recorded - few.recorded;
        if (policy != "full") CHECK(more < 1.85 * (many.full - few.full));
        CHECK(many.resident - few.resident == Approx(more).epsilon(0.05).margin(5e6));
    }
}
