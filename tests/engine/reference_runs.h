#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "common/json.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/same_bits.h"
#include "tests/engine/threads.h"
#include "trace/checks/check_trace.h"

namespace kvscope::engine::testing {

[[nodiscard]] inline std::vector<float> flat_rows(const nlohmann::json& rows) {
    std::vector<float> all;
    for (const auto& row : rows)
        for (const auto& value : row) all.push_back(value.get<float>());
    return all;
}

inline void check_all_near(const std::vector<float>& found, const std::vector<float>& expected, double relative,
                           double margin) {
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(relative).margin(margin));
}

/// A run of a reference case.
struct ReferenceRun {
    const trace::Reader& reader;
    int run = 0;
    const RunPlan& plan;
    size_t n_tokens = 0;
    trace::RunRecord record;
    const nlohmann::json& reference;
};

/// Runs the cases of a file in tests/data/engine/ on the default model in f32, compares what is decoded, and calls
/// `check` for each case.
inline void for_each_reference_run(const std::string& file,
                                   const std::function<RunPlan(const nlohmann::json&)>& plan_of,
                                   const std::function<void(const ReferenceRun&)>& take) {
    const auto golden_runs = golden(file)["prompts"];
    const auto prompt_ids = golden("engine/prompt_ids.json")["prompts"];
    for (const std::string name : {"short", "rewrite"}) {
        std::vector<RunPlan> plans;
        for (const auto& one : golden_runs[name]) plans.push_back(plan_of(one));
        const TemporaryFolder folder;
        const auto ids = prompt_ids[name]["ids"].get<std::vector<int32_t>>();
        const auto reader =
            run_experiment(folder, "g.h5", default_model_f32(), {prompt_of_ids(ids)}, plans, options_of(64));
        for (const auto& problem : trace::find_problems(folder.path() / "g.h5"))
            FAIL_CHECK(problem.path << ": " << problem.found);
        for (size_t i = 0; i < plans.size(); ++i) {
            const int run = static_cast<int>(i) + 1;
            const ReferenceRun one{reader, run, plans[i], ids.size(), reader.run_record(0, run), golden_runs[name][i]};
            CAPTURE(name, one.record.label, one.record.message);
            REQUIRE(one.record.status == "complete");
            CHECK(one.record.output_ids == one.reference["output_ids"].get<std::vector<int32_t>>());
            check_all_near(one.record.step_kl, one.reference["step_kl"].get<std::vector<float>>(), 1e-3, 2e-5);
            take(one);
        }
    }
}

/// Also compares the errors and the number of stored bytes.
/// @param plan_of returns the run of a case
/// @param check_bytes checks the bytes; if nullptr, each layer must hold the case's `bytes` numbers in f32
/// @param check_kept further checks of the kept entries
inline void check_reference_runs(
    const std::string& file, const std::function<RunPlan(const nlohmann::json&)>& plan_of,
    const std::function<void(const trace::RunRecord&, const nlohmann::json&)>& check_bytes = nullptr,
    const std::function<void(const trace::Kept&, size_t n_tokens, const nlohmann::json&)>& check_kept = nullptr) {
    for_each_reference_run(file, plan_of, [&](const ReferenceRun& of) {
        const trace::RunRecord& record = of.record;
        const nlohmann::json& one = of.reference;
        // Nothing is recorded for a prompt whose entries are all whole.
        const auto errors = [&](const std::vector<float>& recorded, const char* name) {
            const auto expected = flat_rows(one[name]);
            check_all_near(recorded.empty() ? std::vector<float>(expected.size()) : recorded, expected, 1e-4, 1e-6);
        };
        errors(record.stored_key_error, "key_error");
        errors(record.stored_value_error, "value_error");
        check_all_near(record.output_error, flat_rows(one["output_error"]), 1e-3, 1e-5);
        CHECK(record.cache_bytes == record.cache_bytes_predicted);
        if (check_kept) check_kept(*of.reader.kept(0, of.run), of.n_tokens, one);
        if (check_bytes) return check_bytes(record, one);
        REQUIRE(record.cache_bytes.size() == one["bytes"].size());
        for (size_t layer = 0; layer < record.cache_bytes.size(); ++layer)
            CHECK(record.cache_bytes[layer] == one["bytes"][layer].get<uint64_t>() * sizeof(float));
    });
}

/// Checks that every run but the first has bit-identical answers in a batch, alone and with one thread, for whole
/// prompts and for one with a question that is read later.
inline void check_independence(const Model& model, const std::vector<RunPlan>& plans) {
    const TemporaryFolder folder;
    const std::vector<Prompt> prompts{prompt_of_ids(some_ids(model, 130)), prompt_of_ids(some_ids(model, 120, 4), 90)};
    const auto shared = run_experiment(folder, "s.h5", model, prompts, plans, options_of(8));
    const auto isolated = run_experiment(folder, "i.h5", model, prompts, plans, options_of(8, true, true));
    const Threads one(1);
    const auto alone = run_experiment(folder, "a.h5", model, {prompts[1]}, {plans.back()}, options_of(8));
    for (int prompt = 0; prompt < 2; ++prompt)
        for (int run = 2; run <= static_cast<int>(plans.size()); ++run) {
            const auto a = shared.run_record(prompt, run), b = isolated.run_record(prompt, run);
            CAPTURE(a.label, a.message, b.message);
            REQUIRE(a.status == "complete");
            REQUIRE(b.status == "complete");
            CHECK(a.output_ids == b.output_ids);
            CHECK(same_bits(a.step_kl, b.step_kl));
            CHECK(a.cache_bytes == b.cache_bytes);
            CHECK(a.cache_bytes == a.cache_bytes_predicted);
            CHECK(same_bits(a.stored_key_error, b.stored_key_error));
            CHECK(same_bits(a.stored_value_error, b.stored_value_error));
        }
    const auto last = shared.run_record(1, static_cast<int>(plans.size()));
    CHECK(same_bits(alone.run_record(0, 1).step_kl, last.step_kl));
    CHECK(alone.run_record(0, 1).output_ids == last.output_ids);
}

/// Checks policies in a batch with snapkv, in f32 and bf16.
inline void check_independence(const char* model_name, const std::vector<std::string>& policies,
                               const std::string& budget) {
    for (const auto dtype : {kernels::DType::f32, kernels::DType::bf16}) {
        CAPTURE(model_name, kernels::name_of(dtype));
        const auto model = small_model(model_name, dtype);
        std::vector<RunPlan> plans{plan("snapkv:window=8", "40")};
        for (const auto& policy : policies) plans.push_back(plan(policy, budget));
        check_independence(model, plans);
    }
}

}  // namespace kvscope::engine::testing
