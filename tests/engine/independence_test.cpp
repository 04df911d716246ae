// A run's results depend neither on other runs, nor on when these end, nor on the number of threads, nor on
// interruptions: they are bit-identical in f32 and bf16.

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>

#include "common/stopped.h"
#include "engine/decode/decode_answers.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/fake_device.h"
#include "tests/engine/same_bits.h"
#include "tests/engine/threads.h"
#include "tests/engine/whole_cache.h"
#include "tests/trace/whole_records.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

/// Returns a tiny model of tests/data/models: with grouped heads, with biases, or with quantized weights.
const engine::Model& tiny(const std::string& name, kernels::DType dtype) {
    static std::map<std::pair<std::string, kernels::DType>, engine::Model> models;
    const auto key = std::pair(name, dtype);
    if (!models.contains(key)) {
        engine::SilentProgress progress;
        models.emplace(key,
                       engine::Model::open(test_data("models/" + name), dtype, progress, engine::device_of_tests()));
    }
    return models.at(key);
}

/// Checks that records agree in all numbers except times.
void check_same(const trace::RunRecord& a, const trace::RunRecord& b) {
    CAPTURE(a.label, a.budget, a.message, b.message);
    REQUIRE(a.status == "complete");
    REQUIRE(b.status == "complete");
    CHECK(same_bits(a.kept_indices, b.kept_indices));
    CHECK(same_bits(a.scores, b.scores));
    CHECK(same_bits(a.scores_f64, b.scores_f64));
    CHECK(same_bits(a.output_ids, b.output_ids));
    CHECK(same_bits(a.step_kl, b.step_kl));
    CHECK(same_bits(a.step_agreement, b.step_agreement));
    CHECK(same_bits(a.output_error, b.output_error));
    CHECK(same_bits(a.kl_attention_lost, b.kl_attention_lost));
    CHECK(same_bits(a.attention_kept, b.attention_kept));
}

void check_same(const trace::PromptRecord& a, const trace::PromptRecord& b) {
    CHECK(same_bits(a.last_logits, b.last_logits));
    CHECK(same_bits(a.window_attention, b.window_attention));
    CHECK(same_bits(a.adjacent_similarity_k, b.adjacent_similarity_k));
    CHECK(same_bits(a.mode_contribution_q, b.mode_contribution_q));
    CHECK(same_bits(a.layer_similarity_v, b.layer_similarity_v));
    CHECK(same_bits(a.gradient_alignment_c12, b.gradient_alignment_c12));
    CHECK(same_bits(a.query_similarity, b.query_similarity));
    CHECK(same_bits(a.head_jsd, b.head_jsd));
}

/// Returns the records of all runs on one prompt, without a trace.
std::vector<trace::RunRecord> records_of(const engine::Model& model, const engine::Prompt& prompt,
                                         std::vector<engine::RunPlan> plans, const engine::ExperimentOptions& options) {
    plans = engine::with_full_run_first(std::move(plans));
    std::vector<trace::RunRecord> records(plans.size());
    engine::SilentProgress progress;
    engine::Experiment experiment(model, plans, options, progress);
    experiment.on_run = [&](int, int run, const trace::RunRecord& record) {
        records[static_cast<size_t>(run)] = record;
    };
    experiment.run({&prompt, 1});
    return records;
}

/// Returns 51 runs with every policy that changes the pass or the decoding. The first has a wider window than the
/// recorded one.
std::vector<engine::RunPlan> many_plans() {
    std::vector<engine::RunPlan> plans;
    for (const std::string budget : {"40", "48", "56"}) {
        for (const std::string policy :
             {"snapkv:window=36", "snapkv", "streaming-llm", "dapq", "laq", "gemfilter", "h2o", "ada-snapkv", "cam",
              "k-vec", "longcache", "snapkv:granularity=query_head", "snapkv:positions=cache",
              "streaming-llm:rolling=on", "streaming-llm:rolling=on,positions=cache", "h2o:rolling=on", "random"})
            plans.push_back(plan(policy, budget));
    }
    return plans;
}

/// Cancels at the given call.
class StopsAt final : public engine::Progress {
 public:
    explicit StopsAt(int64_t at) : left_(at) {}
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view) override {}
    std::stop_token stop_token() const override {
        if (--left_ < 0) stop_.request_stop();
        return stop_.get_token();
    }

 private:
    mutable int64_t left_;
    mutable std::stop_source stop_;
};

}  // namespace

TEST_CASE("a run is the same alone and beside 1, 12, 16 and 51 others") {
    const auto dtype = GENERATE(kernels::DType::f32, kernels::DType::bf16);
    const std::string name = GENERATE("llama3-gqa-sharded", "llama-biases", "gguf-llama-quantised/model.gguf");
    CAPTURE(name_of(dtype), name);
    const auto& model = tiny(name, dtype);
    const auto prompt = prompt_of_ids(some_ids(model, 120));
    const auto plans = many_plans();
    const auto alone = records_of(model, prompt, plans, options_of(16, true, true));
    REQUIRE(alone.size() == 52);
    for (const size_t beside : {1, 12, 16, 51}) {
        CAPTURE(beside);
        const std::vector some(plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(beside));
        const auto batch = records_of(model, prompt, some, options_of(16));
        REQUIRE(batch.size() == beside + 1);
        for (size_t run = 0; run < batch.size(); ++run) check_same(batch[run], alone[run]);
    }
}

TEST_CASE("runs decide the same with any other runs and any number of threads") {
    const auto& model = tiny("llama3-gqa-sharded", kernels::DType::f32);
    const auto prompt = prompt_of_ids(some_ids(model, 120));
    const auto plans = many_plans();
    const auto alone = [&] {
        const Threads threads(1);
        return records_of(model, prompt, plans, options_of(4, true, true));
    }();
    for (const int n_threads : {1, 2, 7}) {
        const Threads threads(n_threads);
        for (const size_t stride : {1, 2, 5, 17}) {
            CAPTURE(n_threads, stride);
            std::vector<engine::RunPlan> some;
            std::vector<size_t> which{0};  // the full run
            for (size_t i = stride - 1; i < plans.size(); i += stride) {
                some.push_back(plans[i]);
                which.push_back(i + 1);
            }
            const auto beside = records_of(model, prompt, some, options_of(4));
            REQUIRE(beside.size() == which.size());
            for (size_t run = 0; run < beside.size(); ++run) check_same(beside[run], alone[which[run]]);
        }
    }
}

TEST_CASE("runs that leave the batch early do not change the remaining ones") {
    const auto dtype = GENERATE(kernels::DType::f32, kernels::DType::bf16);
    CAPTURE(name_of(dtype));
    const auto& model = tiny("llama3-gqa-sharded", dtype).transformer();
    engine::SilentProgress progress;
    constexpr int64_t n_new = 24;
    constexpr size_t n_runs = 20;
    struct Run {
        engine::RunCache cache;
        std::vector<float> logits;
        int64_t position;
    };
    const auto all_runs = [&] {  // prompts of different lengths
        std::vector<Run> runs;
        for (size_t i = 0; i < n_runs; ++i) {
            const auto ids = some_ids(tiny("llama3-gqa-sharded", dtype), 30 + static_cast<int>(i), 7 + unsigned(i));
            auto [cache, logits] = whole_cache(model, ids);
            cache.reserve(n_new);
            runs.push_back({std::move(cache), std::move(logits), static_cast<int64_t>(ids.size())});
        }
        return runs;
    };
    const auto answers = [&](std::span<Run> runs, std::span<const int32_t> end_ids) {
        std::vector<engine::Sequence> sequences;
        std::vector<std::vector<float>> first;
        for (auto& run : runs) {
            sequences.push_back({&run.cache, run.position});
            first.push_back(run.logits);
        }
        return engine::decode_answers(model, sequences, first, n_new, {}, end_ids, progress);
    };
    std::vector<std::vector<int32_t>> alone;
    auto runs = all_runs();
    for (auto& run : runs) alone.push_back(answers({&run, 1}, {})[0].ids);
    // Tokens from the middle of the first runs' answers become end tokens.
    std::vector<int32_t> end_ids;
    for (size_t i = 0; i < 6; ++i) end_ids.push_back(alone[i][3 * i]);
    std::sort(end_ids.begin(), end_ids.end());
    runs = all_runs();
    const auto batch = answers(runs, end_ids);
    size_t n_early = 0;
    for (size_t i = 0; i < n_runs; ++i) {
        CAPTURE(i);
        const auto& ids = batch[i].ids;
        n_early += ids.size() < n_new;
        REQUIRE(ids.size() <= alone[i].size());
        CHECK(std::equal(ids.begin(), ids.end(), alone[i].begin()));
    }
    CHECK(n_early >= 6);
}

TEST_CASE("a resumed trace and a trace made with another number of threads contain the same numbers") {
    const auto dtype = GENERATE(kernels::DType::f32, kernels::DType::bf16);
    CAPTURE(name_of(dtype));
    const auto& model = tiny("llama3-gqa-sharded", dtype);
    const TemporaryFolder folder;
    const auto context = some_ids(model, 130);
    auto asked = context;
    for (const int32_t id : some_ids(model, 9, 2)) asked.push_back(id);
    const std::vector prompts{prompt_of_ids(context), prompt_of_ids(asked, 130)};
    auto options = options_of(12);
    options.alignment = true;
    std::vector<engine::RunPlan> plans;
    for (const std::string policy :
         {"snapkv:window=36", "snapkv", "laq", "dapq", "gemfilter", "h2o:rolling=on", "streaming-llm"})
        plans.push_back(plan(policy, "40"));
    const auto once = [&] {
        const Threads threads(1);
        return run_experiment(folder, "once.h5", model, prompts, plans, options);
    }();
    const auto check = [&](const trace::Reader& other) {
        for (int prompt = 0; prompt < 2; ++prompt) {
            check_same(trace::prompt_record(once, prompt), trace::prompt_record(other, prompt));
            for (int run = 0; run < once.n_runs(prompt); ++run)
                check_same(once.run_record(prompt, run), other.run_record(prompt, run));
        }
    };
    for (const int n : {2, 3}) {
        const Threads threads(n);
        check(run_experiment(folder, std::to_string(n) + ".h5", model, prompts, plans, options));
    }

    const auto with_full = engine::with_full_run_first(plans);
    const auto path = folder.path() / "resumed.h5";
    const auto recipe = engine::recipe_json(model, prompts, with_full, options);
    bool stopped = true;
    int n_stops = 0;
    for (int64_t patience = 5; stopped; patience += 9, ++n_stops) {
        StopsAt progress(patience);
        trace::Writer writer(path, recipe);
        try {
            engine::Experiment(model, with_full, options, writer, progress).run(prompts);
            writer.finish();
            stopped = false;
        } catch (const Stopped&) {
        }
    }
    CHECK(n_stops > 3);
    check(trace::Reader(path));
}
