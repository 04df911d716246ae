#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "tests/engine/experiment_on_disk.h"
#include "tests/policies/throwaway_policies.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

double mean(const std::vector<float>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<engine::RunPlan> all_policies(const std::string& budget) {
    std::vector<engine::RunPlan> plans;
    for (const auto& definition : policies::definitions()) {
        if (definition.name != "full" && !definition.needs_file)
            plans.push_back(plan(definition.name, budget_for(definition, budget)));
    }
    return plans;
}

/// Compares (L, H) with the reference: relatively, or within the rounding of numbers near 0.
void check_layers(const std::vector<float>& found, const nlohmann::json& expected) {
    size_t at = 0;
    for (const auto& layer : expected) {
        for (const auto& value : layer) {
            REQUIRE(at < found.size());
            CAPTURE(at);
            CHECK(found[at++] == Approx(value.get<float>()).epsilon(1e-3).margin(1e-6));
        }
    }
    CHECK(at == found.size());
}

}  // namespace

// Reference: brute force by transformers and NumPy in f64 (scripts/golden/runs.py). No run has a score near its
// cut-off, so f32 keeps exactly the same entries, and every step must agree: another share in one layer changes a
// step_kl by 6 % (docs/evidence.md).
TEST_CASE("the output of compressed runs equals the reference", "[arithmetic][default_model]") {
    const auto& model = default_model_f32();
    const auto golden_runs = golden("engine/runs.json")["prompts"];
    const auto prompt_ids = golden("engine/prompt_ids.json")["prompts"];
    for (const std::string name : {"short", "rewrite"}) {
        const auto& expected = golden_runs[name];
        std::vector<engine::RunPlan> plans;
        for (const auto& one : expected["cases"])
            plans.push_back(plan(one["policy"].get<std::string>(), std::to_string(one["budget"].get<int>())));
        const TemporaryFolder folder;
        auto prompt = prompt_of_ids(prompt_ids[name]["ids"].get<std::vector<int32_t>>());
        const auto reader = run_experiment(folder, "t.h5", model, {prompt}, plans, options_of(64));
        CHECK(reader.run_record(0, 0).output_ids == expected["full"]["output_ids"].get<std::vector<int32_t>>());
        for (size_t i = 0; i < plans.size(); ++i) {
            const auto record = reader.run_record(0, static_cast<int>(i) + 1);
            const auto& one = expected["cases"][i];
            CAPTURE(name, record.label);
            CHECK(record.output_ids == one["output_ids"].get<std::vector<int32_t>>());
            const auto kl = one["step_kl"].get<std::vector<float>>();
            REQUIRE(record.step_kl.size() == kl.size());
            for (size_t t = 0; t < kl.size(); ++t) {
                CAPTURE(t);
                CHECK(record.step_kl[t] == Approx(kl[t]).epsilon(1e-3).margin(2e-5));
                CHECK(int(record.step_agreement[t]) == one["step_agreement"][t].get<int>());
            }
            check_layers(record.attention_kept, one["attention_kept"]);
            // Older versions of runs.json have no output_error.
            if (one.contains("output_error")) check_layers(record.output_error, one["output_error"]);
        }
    }
}

TEST_CASE("with a budget of the whole prompt, decoding equals that of the full run exactly", "[processor]") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto reader = run_experiment(folder, "t.h5", model, {prompt_of_ids(some_ids(model, 100))},
                                       all_policies("100%"), options_of(12));
    const auto full = reader.run_record(0, 0);
    for (int run = 1; run < reader.n_runs(0); ++run) {
        const auto record = reader.run_record(0, run);
        CAPTURE(record.label, record.message);
        REQUIRE(record.status == "complete");
        CHECK(record.kept_indices.size() == full.kept_indices.size());
        CHECK(record.output_ids == full.output_ids);
        // Exactly 0, because results do not depend on the number of compared runs.
        CHECK(*std::max_element(record.step_kl.begin(), record.step_kl.end()) == 0.0f);
        CHECK(*std::max_element(record.output_error.begin(), record.output_error.end()) == 0.0f);
        CHECK(mean(record.attention_kept) == Approx(1.0).epsilon(1e-5));
    }
}

TEST_CASE("shared and isolated mode keep the same entries and give the same answers", "[arithmetic][default_model]") {
    const TemporaryFolder folder;
    const auto check = [&](const engine::Model& model, const engine::Prompt& prompt, int64_t n_new,
                           const std::string& name) {
        const std::string budget = "40";
        auto plans = all_policies(budget);
        plans.push_back(plan("snapkv:granularity=query_head", budget));
        plans.push_back(plan("snapkv:positions=cache", budget));
        plans.push_back(plan("streaming-llm:rolling=on", budget));
        plans.push_back(plan("streaming-llm:rolling=on,positions=cache", budget));
        plans.push_back(plan("h2o:rolling=on", budget));
        const auto shared =
            run_experiment(folder, std::string(name).append("-s.h5"), model, {prompt}, plans, options_of(n_new));
        const auto isolated = run_experiment(folder, std::string(name).append("-i.h5"), model, {prompt}, plans,
                                             options_of(n_new, true, true));
        REQUIRE(shared.n_runs(0) == isolated.n_runs(0));
        for (int run = 0; run < shared.n_runs(0); ++run) {
            const auto a = shared.run_record(0, run);
            const auto b = isolated.run_record(0, run);
            CAPTURE(a.label, a.message, b.message);
            REQUIRE(a.status == "complete");
            REQUIRE(b.status == "complete");
            CHECK(a.kept_offsets == b.kept_offsets);
            CHECK(a.kept_indices == b.kept_indices);
            CHECK(a.output_ids == b.output_ids);
            CHECK(a.cache_bytes == b.cache_bytes);
            CHECK(a.cache_bytes == a.cache_bytes_predicted);
            CHECK(b.peak_bytes.has_value());
        }
    };
    check(tiny_model(), prompt_of_ids(some_ids(tiny_model(), 150)), 10, "tiny");
    const auto ids = golden("engine/prompt_ids.json")["prompts"]["short"]["ids"].get<std::vector<int32_t>>();
    check(default_model_f32(), prompt_of_ids({ids.begin(), ids.begin() + 80}), 4, "default");
}

TEST_CASE("the peak memory of an isolated run does not depend on earlier runs", "[processor]") {
    const auto& model = default_model_f32();
    const TemporaryFolder folder;
    const std::vector plans{plan("snapkv", "64"), plan("streaming-llm", "64"), plan("random", "64")};
    const auto reader =
        run_experiment(folder, "i.h5", model, {prompt_of_ids(some_ids(model, 600))}, plans, options_of(4, true, true));
    std::vector<int64_t> peaks;
    for (int run = 0; run < reader.n_runs(0); ++run) {
        const auto record = reader.run_record(0, run);
        REQUIRE(record.peak_bytes.has_value());
        if (record.label != "full") peaks.push_back(static_cast<int64_t>(*record.peak_bytes));
    }
    REQUIRE(peaks.size() == plans.size());
    const auto [least, most] = std::minmax_element(peaks.begin(), peaks.end());
    CAPTURE(peaks);
    CHECK(*least > 8 << 20);
    CHECK(*most < 2 * *least);
}

TEST_CASE("rolling policies stay within their budget while they decode") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto ids = some_ids(model, 120);
    const auto reader = run_experiment(
        folder, "t.h5", model, {prompt_of_ids(ids)},
        {plan("streaming-llm", "40"), plan("streaming-llm:rolling=on", "40"), plan("h2o:rolling=on", "40")},
        options_of(30));
    CHECK(reader.run_record(0, 1).kept_indices == reader.run_record(0, 2).kept_indices);
    CHECK(reader.run_record(0, 1).step_kl != reader.run_record(0, 2).step_kl);
    CHECK(reader.run_record(0, 3).step_kl.size() == reader.run_record(0, 0).output_ids.size());
}

TEST_CASE("each question is asked of the same compressed context") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto context = some_ids(model, 90);
    auto first = context, second = context;
    for (const int32_t id : some_ids(model, 7, 2)) first.push_back(id);
    for (const int32_t id : some_ids(model, 11, 3)) second.push_back(id);
    const auto plans = all_policies("40");
    const auto both = run_experiment(folder, "both.h5", model, {prompt_of_ids(first, 90), prompt_of_ids(second, 90)},
                                     plans, options_of(8));
    const auto alone = run_experiment(folder, "alone.h5", model, {prompt_of_ids(second, 90)}, plans, options_of(8));
    REQUIRE(both.n_prompts() == 2);
    CHECK(both.prompt(1).context_of == 0);
    for (int run = 0; run < both.n_runs(0); ++run) {
        const auto of_first = both.run_record(0, run);
        const auto of_second = both.run_record(1, run);
        const auto of_alone = alone.run_record(0, run);
        CAPTURE(of_first.label, of_first.message, of_second.message);
        CHECK(of_first.kept_indices == of_second.kept_indices);
        if (of_first.policy == "oracle") continue;  // depends on the answers to all questions
        CHECK(of_second.kept_indices == of_alone.kept_indices);
        CHECK(of_second.output_ids == of_alone.output_ids);
        CHECK(of_second.step_kl == of_alone.step_kl);
    }
}

TEST_CASE("a budget that one policy cannot use fails only that run") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto reader = run_experiment(folder, "t.h5", model, {prompt_of_ids(some_ids(model, 100))},
                                       {plan("snapkv", "20"), plan("snapkv:window=8", "20")}, options_of(4));
    CHECK(reader.run(0, 1).status == "failed");
    CHECK(reader.run(0, 1).message.find("20") != std::string::npos);
    CHECK(reader.run(0, 2).status == "complete");
    engine::SilentProgress progress;
    const auto plans = engine::with_full_run_first({plan("snapkv", "20")});
    const std::vector<engine::Prompt> prompts{prompt_of_ids(some_ids(model, 100))};
    trace::Writer writer(folder.path() / "none.h5", engine::recipe_json(model, prompts, plans, options_of(4)));
    engine::Experiment experiment(model, plans, options_of(4), writer, progress);
    CHECK_THROWS_AS(experiment.run(prompts), std::invalid_argument);
}

// The policy interface supports kinds of policies that do not exist yet.
TEST_CASE("policies of every other kind run in the same engine") {
    const auto& model = tiny_model();
    const TemporaryFolder folder;
    const auto ids = some_ids(model, 100);
    std::vector<engine::RunPlan> plans;
    for (const auto& definition : policies::throwaway::definitions())
        plans.push_back({policies::parse_parameters(definition, ""), policies::parse_budget("40")});
    for (const bool isolated : {false, true}) {
        const auto reader = run_experiment(folder, isolated ? "i.h5" : "s.h5", model, {prompt_of_ids(ids)}, plans,
                                           options_of(8, true, isolated));
        for (int run = 1; run < reader.n_runs(0); ++run) {
            const auto record = reader.run_record(0, run);
            CAPTURE(isolated, record.label, record.message);
            CHECK(record.status == "complete");
            CHECK(record.step_kl.size() == reader.run_record(0, 0).output_ids.size());
            if (record.policy != "stores-mapped") CHECK(mean(record.output_error) > 0);
            CHECK(record.cache_bytes == record.cache_bytes_predicted);
        }
    }
    // Maps rebuild the original numbers, appended tokens leave no entries, and a filtered prompt stays within its
    // budget.
    std::vector<engine::RunPlan> whole;
    for (const auto& one : plans) whole.push_back({one.spec, policies::parse_budget("100%")});
    const auto reader = run_experiment(folder, "w.h5", model, {prompt_of_ids(ids)}, whole, options_of(8));
    for (int run = 1; run < reader.n_runs(0); ++run) {
        const auto record = reader.run_record(0, run);
        CAPTURE(record.label, record.message);
        if (record.policy == "appends-tokens" || record.policy == "filters-prompt") {
            CHECK(record.output_ids == reader.run_record(0, 0).output_ids);
            CHECK(mean(record.step_kl) < 1e-6);
        }
        if (record.policy == "stores-mapped") {
            CHECK(record.output_ids == reader.run_record(0, 0).output_ids);
            CHECK(mean(record.output_error) < 1e-5);
            CHECK(record.cache_bytes == reader.run_record(0, 0).cache_bytes);
        }
        if (record.policy == "stores-channels") CHECK(record.cache_bytes < reader.run_record(0, 0).cache_bytes);
    }
}
