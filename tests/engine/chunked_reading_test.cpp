#include "engine/prefill/chunked_reading.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "common/stopped.h"
#include "engine/prefill/prefill.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/threads.h"
#include "trace/checks/check_trace.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

/// Reads a prompt with several policies and budgets together.
std::vector<engine::ChunkedRun> read(const engine::Model& model, const std::vector<int32_t>& ids,
                                     const std::vector<std::pair<std::string, int64_t>>& wanted,
                                     std::vector<policies::CreatedPolicy>& owners) {
    std::vector<engine::ChunkedRun> runs;
    for (const auto& [text, budget] : wanted) {
        policies::RunContext context;
        context.shape = model.transformer().shape();
        context.n_tokens = static_cast<int64_t>(ids.size());
        context.budget = budget;
        owners.push_back(policies::parse_policy(text).create());
        owners.back()->begin(context);
        auto* policy = owners.back().as<policies::ReadsThroughOwnCache>();
        runs.push_back({.policy = policy, .label = text, .budget = budget, .reading = policy->reading(context)});
        runs.back().reading.chunk = std::min(runs.back().reading.chunk, context.n_tokens);
    }
    engine::SilentProgress progress;
    engine::read_in_chunks(model.transformer(), ids, runs, progress);
    return runs;
}

bool same_numbers(const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor x = a.cpu().contiguous(), y = b.cpu().contiguous();
    return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
           std::memcmp(x.const_data_ptr(), y.const_data_ptr(), static_cast<size_t>(x.numel()) * x.element_size()) == 0;
}

at::Tensor filled(const engine::MergedLayer& layer, bool keys) {
    return (keys ? layer.entries.keys : layer.entries.values).narrow(1, 0, layer.size());
}

bool same_run(const engine::ChunkedRun& a, const engine::ChunkedRun& b) {
    if (a.last_logits != b.last_logits || a.layers.size() != b.layers.size() || a.error != b.error) return false;
    for (size_t i = 0; i < a.layers.size(); ++i) {
        const auto &x = a.layers[i], &y = b.layers[i];
        if (x.masses != y.masses || x.positions != y.positions || !same_numbers(filled(x, true), filled(y, true)) ||
            !same_numbers(filled(x, false), filled(y, false)))
            return false;
    }
    return true;
}

double squared_norm(const at::Tensor& vector) {
    const at::Tensor packed = vector.contiguous();
    double sum = 0;
    for (int64_t c = 0; c < packed.numel(); ++c) sum += std::pow(packed.const_data_ptr<float>()[c], 2);
    return sum;
}

/// Returns the sums (G, d) over the entries of (G, n, d).
std::vector<double> sums(const at::Tensor& entries) {
    const at::Tensor packed = entries.cpu().contiguous();
    const auto n = static_cast<size_t>(packed.size(1)), d = static_cast<size_t>(packed.size(2));
    const float* data = packed.const_data_ptr<float>();
    std::vector<double> sums(static_cast<size_t>(packed.size(0)) * d, 0.0);
    for (size_t i = 0; i < static_cast<size_t>(packed.numel()); ++i)
        sums[i / (n * d) * d + i % d] += static_cast<double>(data[i]);
    return sums;
}

class StopsAfter : public engine::Progress {
 public:
    explicit StopsAfter(int asked) : left_(asked) {}
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view) override {}
    std::stop_token stop_token() const override {
        if (left_-- == 0) stop_.request_stop();
        return stop_.get_token();
    }

 private:
    mutable int left_;
    mutable std::stop_source stop_;
};

/// Merges the first pairs and stores each layer's gradients.
class KeepsGradients : public policies::ReadsThroughOwnCache {
 public:
    std::vector<std::vector<float>> gradients;
    bool fails = false;

    policies::OwnCacheReading reading(const policies::RunContext&) const override {
        return {.chunk = 15, .key_gradients = true};
    }
    void begin(const policies::RunContext&) override {}
    policies::Merges merge(const policies::MergeObservations& seen, int64_t n_merges) override {
        if (fails) throw std::runtime_error("the test wants it");
        gradients.emplace_back(seen.key_gradients.begin(), seen.key_gradients.end());
        policies::Merges merges;
        for (uint32_t i = 0; i < std::min<int64_t>(n_merges, seen.n_entries / 2); ++i) merges.first.push_back(2 * i);
        merges.keys.assign(merges.first.size() * static_cast<size_t>(seen.shape.n_kv_heads * seen.shape.head_dim),
                           0.5f);
        return merges;
    }
};

const std::vector<std::string> model_names{"llama3-gqa-sharded", "mistral-window", "qwen2-sliding-yarn",
                                           "qwen3-qk-norm"};

}  // namespace

// Reference: float64, transformers' modules and NumPy (scripts/golden/kvslimmer.py).
TEST_CASE("KVSlimmer and AsymKV have the reference's merges and answers", "[arithmetic][default_model]") {
    const auto& model = default_model_f32();
    const auto golden_runs = golden("engine/chunked_runs.json")["prompts"];
    const auto prompt_ids = golden("engine/prompt_ids.json")["prompts"];
    for (const std::string name : {"short", "rewrite"}) {
        std::vector<engine::RunPlan> plans;
        std::vector<std::pair<std::string, int64_t>> wanted;
        for (const auto& one : golden_runs[name]) {
            wanted.emplace_back(one["policy"].get<std::string>(), one["budget"].get<int64_t>());
            plans.push_back(plan(wanted.back().first, std::to_string(wanted.back().second)));
        }
        const auto ids = prompt_ids[name]["ids"].get<std::vector<int32_t>>();
        std::vector<policies::CreatedPolicy> owners;
        const auto read_runs = read(model, ids, wanted, owners);
        const TemporaryFolder folder;
        const auto reader = run_experiment(folder, "t.h5", model, {prompt_of_ids(ids)}, plans, options_of(64));
        for (const auto& problem : trace::find_problems(folder.path() / "t.h5"))
            FAIL_CHECK(problem.path << ": " << problem.found);
        for (size_t i = 0; i < plans.size(); ++i) {
            const auto& one = golden_runs[name][i];
            const auto record = reader.run_record(0, static_cast<int>(i) + 1);
            CAPTURE(name, record.label, record.message);
            REQUIRE(record.status == "complete");
            // Gradients are computed in f32, as PyTorch's reference, and weights are ratios of their squares.
            const bool by_gradients = record.policy == "asymkv";
            const auto kept = reader.kept(0, static_cast<int>(i) + 1);
            for (size_t layer = 0; layer < kept->n_layers; ++layer) {
                const auto positions = one["positions"][layer].get<std::vector<uint32_t>>();
                const auto masses = one["masses"][layer].get<std::vector<float>>();
                CAPTURE(layer);
                REQUIRE(read_runs[i].layers[layer].positions == positions);
                for (size_t row = 0; row < kept->n_rows; ++row) {
                    const auto found = kept->row(layer, row);
                    REQUIRE(std::vector<uint32_t>(found.begin(), found.end()) == positions);
                    const auto first = record.merged_cardinality.begin() +
                                       static_cast<std::ptrdiff_t>(kept->offsets[layer * kept->n_rows + row]);
                    CHECK(std::equal(masses.begin(), masses.end(), first));
                    CHECK(kept->held(layer, row).size() == ids.size());
                    // Norm over all merged keys.
                    double norm = 0;
                    const auto& merged = read_runs[i].layers[layer];
                    const at::Tensor keys = merged.entries.keys.select(0, static_cast<int64_t>(row));
                    for (int64_t e = 0; e < merged.size(); ++e)
                        if (merged.n_tokens(static_cast<size_t>(e)) > 1) norm += squared_norm(keys.select(0, e));
                    CHECK(std::sqrt(norm) ==
                          Approx(one["key_norms"][layer][row].get<double>()).epsilon(by_gradients ? 2e-4 : 1e-5));
                }
            }
            size_t place = 0;
            for (size_t layer = 0; layer < kept->n_layers; ++layer)
                for (size_t row = 0; row < kept->n_rows; ++row, ++place) {
                    CHECK(record.stored_key_error[place] ==
                          Approx(one["key_error"][layer][row].get<float>()).epsilon(by_gradients ? 1e-3 : 1e-4));
                    CHECK(record.stored_value_error[place] ==
                          Approx(one["value_error"][layer][row].get<float>()).epsilon(1e-4));
                }
            CHECK(*std::max_element(record.stored_entries.begin(), record.stored_entries.end()) == 0);
            const bool is_alone = one["masses"][0][0] == 1;
            CHECK((kept->fate(0, 0, 0).kind == trace::TokenFate::Kind::whole) == is_alone);
            const auto kl = one["step_kl"].get<std::vector<float>>();
            REQUIRE(record.step_kl.size() == kl.size());
            for (size_t t = 0; t < kl.size(); ++t)
                CHECK(record.step_kl[t] ==
                      Approx(kl[t]).epsilon(by_gradients ? 1e-2 : 1e-3).margin(by_gradients ? 5e-4 : 2e-5));
            CHECK(record.output_ids == one["output_ids"].get<std::vector<int32_t>>());
            CHECK(record.attention_kept.size() == 30 * 9);
            CHECK(*std::min_element(record.attention_kept.begin(), record.attention_kept.end()) > 0.9999f);
            CHECK(record.cache_bytes == record.cache_bytes_predicted);
        }
    }
}

// Reference: PyTorch's autograd in float64 (scripts/golden/kvslimmer.py). Its norms in float32 differ by up to 1.4e-4.
TEST_CASE("a chunk's gradient with respect to earlier keys equals the reference", "[default_model]") {
    const auto& model = default_model_f32();
    const auto reference = golden("engine/chunked_runs.json")["gradients"];
    auto ids = golden("engine/prompt_ids.json")["prompts"][reference["prompt"].get<std::string>()]["ids"]
                   .get<std::vector<int32_t>>();
    const auto past = reference["past"].get<int64_t>(), chunk = reference["chunk"].get<int64_t>();
    ids.resize(static_cast<size_t>(past + chunk));
    KeepsGradients policy;
    // All earlier chunks have the same length, so only the last one exceeds the budget.
    engine::ChunkedRun run{.policy = &policy,
                           .budget = past - 1,
                           .reading = {.chunk = chunk, .final_merge = false, .key_gradients = true}};
    engine::SilentProgress progress;
    engine::read_in_chunks(model.transformer(), ids, {&run, 1}, progress);
    REQUIRE(run.error.empty());
    const auto shape = model.transformer().shape();
    REQUIRE(policy.gradients.size() == static_cast<size_t>(shape.n_layers));
    const auto n = static_cast<size_t>(past * shape.head_dim);
    for (size_t layer = 0; layer < policy.gradients.size(); ++layer)
        for (size_t head = 0; head < static_cast<size_t>(shape.n_kv_heads); ++head) {
            const auto found = std::span(policy.gradients[layer]).subspan(head * n, n);
            double squares = 0, sum = 0;
            for (size_t i = 0; i < n; ++i) {
                squares += std::pow(found[i], 2);
                sum += static_cast<double>(found[i]) * static_cast<double>(1 + i % 7);
            }
            CAPTURE(layer, head);
            const double norm = reference["norms"][layer][head];
            CHECK(std::sqrt(squares) == Approx(norm).epsilon(5e-4));
            CHECK(sum == Approx(reference["sums"][layer][head].get<double>()).margin(5e-3 * norm));
        }
}

TEST_CASE("a run with gradients can be stopped anywhere, and fails alone") {
    const auto model = small_model("llama3-gqa-sharded", kernels::DType::f32);
    const auto ids = some_ids(model, 60);
    const auto read_with = [&](engine::Progress& progress, KeepsGradients& policy) {
        engine::ChunkedRun run{.policy = &policy, .budget = 20, .reading = policy.reading({})};
        engine::read_in_chunks(model.transformer(), ids, {&run, 1}, progress);
        return run;
    };
    int n_asked = 0;
    for (;; ++n_asked) {
        KeepsGradients policy;
        StopsAfter progress(n_asked);
        try {
            const auto run = read_with(progress, policy);
            REQUIRE(run.error.empty());
            break;
        } catch (const Stopped&) {
        }
    }
    // Each pass checks once per layer: four chunks are read; two also have a first pass and gradients; the last one
    // again.
    CHECK(n_asked >= model.transformer().shape().n_layers * (4 + 2 * 2 + 1));

    KeepsGradients failing;
    failing.fails = true;
    const auto slimmer = policies::parse_policy("kvslimmer:sinks=4").create();
    policies::RunContext context;
    context.shape = model.transformer().shape();
    context.n_tokens = 60;
    context.budget = 20;
    slimmer->begin(context);
    std::vector<engine::ChunkedRun> runs{
        {.policy = &failing, .budget = 20, .reading = failing.reading({})},
        {.policy = slimmer.as<policies::ReadsThroughOwnCache>(), .budget = 20, .reading = {.chunk = 15}}};
    engine::SilentProgress progress;
    engine::read_in_chunks(model.transformer(), ids, runs, progress);
    CHECK(runs[0].error == "layer 0: the test wants it");
    CHECK(runs[1].error.empty());
    CHECK(runs[1].layers[0].size() == 20);
}

TEST_CASE("a prompt that is read in chunks without merges gives bit-identical results", "[processor]") {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16})
        for (const std::string& name : model_names) {
            const auto model = small_model(name, dtype);
            const auto ids = some_ids(model, 100);
            CAPTURE(name, kernels::name_of(dtype));
            engine::SilentProgress progress;
            engine::PrefillRequest request;
            request.ids = ids;
            const auto whole = engine::prefill(model.transformer(), request, nullptr, progress);
            std::vector<policies::CreatedPolicy> owners;
            for (const auto& run :
                 read(model, ids, {{"kvslimmer:chunk=7", 100}, {"kvslimmer:chunk=64", 500}}, owners)) {
                REQUIRE(run.error.empty());
                CHECK(run.last_logits == whole.last_logits);
                for (size_t layer = 0; layer < run.layers.size(); ++layer) {
                    CHECK_FALSE(run.layers[layer].has_merged());
                    const auto dense = engine::to_dense_layer(model.transformer(), run.layers[layer]);
                    CHECK(same_numbers(dense.keys, whole.cache[layer].keys.narrow(1, 0, 100)));
                    CHECK(same_numbers(dense.values, whole.cache[layer].values.narrow(1, 0, 100)));
                }
            }
        }
}

TEST_CASE("a run's merges depend neither on other runs nor on the number of threads") {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
        const auto model = small_model("llama3-gqa-sharded", dtype);
        const auto ids = some_ids(model, 150);
        const std::vector<std::pair<std::string, int64_t>> wanted{
            {"kvslimmer:sinks=4", 40},          {"asymkv:sinks=4", 40},
            {"asymkv:sinks=4,chunk=70", 30},    {"asymkv:sinks=4,chunk=200", 25},
            {"kvslimmer:sinks=4,chunk=50", 30}, {"kvslimmer:sinks=0,chunk=3,final_merge=off", 20},
            {"kvslimmer:sinks=4,chunk=200", 25}};
        std::vector<policies::CreatedPolicy> owners;
        const auto together = read(model, ids, wanted, owners);
        for (size_t i = 0; i < wanted.size(); ++i) {
            CAPTURE(wanted[i].first);
            const Threads one(1);
            CHECK(same_run(read(model, ids, {wanted[i]}, owners)[0], together[i]));
        }
    }
}

TEST_CASE("sums of masses and of values do not change by merging") {
    const auto model = small_model("llama3-gqa-sharded", kernels::DType::f32);
    const auto ids = some_ids(model, 150);
    std::vector<policies::CreatedPolicy> owners;
    for (const auto& run : read(model, ids,
                                {{"kvslimmer:sinks=4", 40},
                                 {"kvslimmer:sinks=0,chunk=150", 2},
                                 {"kvslimmer:sinks=4,final_merge=off", 40},
                                 {"asymkv:sinks=4", 40},
                                 {"asymkv:sinks=0,chunk=150", 2},
                                 {"asymkv:sinks=4,chunk=1", 12},
                                 {"asymkv:sinks=4,final_merge=off", 40}},
                                owners)) {
        CAPTURE(run.label, run.error);
        REQUIRE(run.error.empty());
        const bool is_final = run.reading.final_merge;
        for (const auto& layer : run.layers) {
            CHECK(std::accumulate(layer.masses.begin(), layer.masses.end(), 0.0f) == 150.0f);
            CHECK(layer.positions.back() == 149);
            CHECK(std::is_sorted(layer.positions.begin(), layer.positions.end()));
            if (is_final)
                CHECK(layer.size() == run.budget);
            else
                CHECK(layer.size() <= run.budget + run.reading.chunk);
            // Each entry's tokens end at its place.
            float read = 0;
            for (size_t i = 0; i < layer.masses.size(); ++i)
                CHECK(static_cast<float>(layer.positions[i] + 1) == (read += layer.masses[i]));
        }
        // The first layer's values do not depend on merges in other layers, so their sum is the prompt's.
        engine::SilentProgress progress;
        engine::PrefillRequest request;
        request.ids = ids;
        const auto whole = engine::prefill(model.transformer(), request, nullptr, progress);
        const auto expected = sums(whole.cache[0].values.narrow(1, 0, 150));
        const auto found = sums(filled(run.layers[0], false));
        for (size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-3));
    }
}

TEST_CASE("a merging run works with other runs, isolated, with questions, several answers and short prompts") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const std::vector<engine::RunPlan> plans{plan("full", "100%"),          plan("kvslimmer:sinks=4", "30"),
                                             plan("snapkv:window=8", "30"), plan("kvslimmer:sinks=4,chunk=11", "20"),
                                             plan("kvslimmer", "20"),       plan("asymkv:sinks=4", "30")};
    auto ids = some_ids(model, 90);
    for (const int32_t id : some_ids(model, 7, 2)) ids.push_back(id);
    auto other = std::vector<int32_t>(ids.begin(), ids.begin() + 90);
    for (const int32_t id : some_ids(model, 5, 3)) other.push_back(id);
    const std::vector<engine::Prompt> prompts{prompt_of_ids(ids, 90), prompt_of_ids(other, 90)};
    const auto shared = run_experiment(folder, "s.h5", model, prompts, plans, options_of(8));
    const auto isolated = run_experiment(folder, "i.h5", model, prompts, plans, options_of(8, true, true));
    for (const char* name : {"s.h5", "i.h5"})
        for (const auto& problem : trace::find_problems(folder.path() / name))
            FAIL_CHECK(name << problem.path << ": " << problem.found);
    for (int prompt = 0; prompt < 2; ++prompt)
        for (int run = 0; run < shared.n_runs(prompt); ++run) {
            const auto a = shared.run_record(prompt, run), b = isolated.run_record(prompt, run);
            CAPTURE(prompt, a.label, a.message);
            if (run == 4) {
                CHECK(a.message.find("32 of them sinks") != std::string::npos);
                CHECK(b.status == "failed");
                continue;
            }
            REQUIRE(a.status == "complete");
            REQUIRE(b.status == "complete");
            CHECK(a.kept_indices == b.kept_indices);
            CHECK(a.merged_cardinality == b.merged_cardinality);
            CHECK(a.output_ids == b.output_ids);
            CHECK(a.step_kl == b.step_kl);
            CHECK(a.kl_attention_lost == b.kl_attention_lost);
            CHECK(a.kl_attention_lost.empty() == (run == 0));
        }
    CHECK(shared.kept(0, 1)->merges());
    // Alone, the run has the same results.
    const auto alone = run_experiment(folder, "a.h5", model, prompts, {plans[0], plans[3]}, options_of(8));
    CHECK(alone.run_record(1, 1).output_ids == shared.run_record(1, 3).output_ids);
    CHECK(alone.run_record(1, 1).step_kl == shared.run_record(1, 3).step_kl);
    for (const int n : {1, 2, 5}) {
        const auto reader = run_experiment(folder, "n" + std::to_string(n) + ".h5", model,
                                           {prompt_of_ids(some_ids(model, n))}, {plans[0], plans[1]}, options_of(3));
        CHECK(reader.run_record(0, 1).status == "complete");
        CHECK(reader.run_record(0, 1).output_ids == reader.run_record(0, 0).output_ids);
    }
}
