#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cpu_features.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/fake_device.h"
#include "tests/trace/whole_records.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

void check_within(const std::vector<float>& found, const std::vector<float>& expected, double tolerance) {
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(double{found[i]} - double{expected[i]}) <= tolerance);
    }
}

}  // namespace

// Reference: NumPy, rounded to bf16 at the same places. scripts/golden/bf16_runs.py explains the tolerances.
TEST_CASE("runs in bf16 equal the reference's") {
    const bool rounds_attention = kernels::simd_level() >= kernels::SimdLevel::avx512_bf16;
    const auto models = golden("engine/bf16_runs.json")["models"];
    for (const auto& item : models.items()) {
        const std::string& name = item.key();
        const nlohmann::json& expected = item.value();
        CAPTURE(name);
        engine::SilentProgress progress;
        const auto model =
            engine::Model::open(test_data("models/" + name), kernels::DType::bf16, progress, engine::device_of_tests());
        const auto tolerance = [&](const char* of) {
            return rounds_attention ? 2 * expected["spread_pairs"][of].get<double>() : 1e-4;
        };
        std::vector<engine::RunPlan> plans;
        for (const auto& one : expected["cases"])
            plans.push_back(plan(one["policy"].get<std::string>(), std::to_string(one["budget"].get<int>())));
        auto options = options_of(static_cast<int64_t>(expected["full"]["output_ids"].size()));
        options.ignore_eos = true;
        const TemporaryFolder folder;
        const auto reader = run_experiment(
            folder, "t.h5", model, {prompt_of_ids(expected["prompt_ids"].get<std::vector<int32_t>>())}, plans, options);

        check_within(trace::prompt_record(reader, 0).last_logits, expected["first_logits"].get<std::vector<float>>(),
                     tolerance("logits"));
        if (!rounds_attention) CHECK(expected["to_f32"]["logits"].get<double>() > 100 * tolerance("logits"));
        CHECK(reader.run_record(0, 0).output_ids == expected["full"]["output_ids"].get<std::vector<int32_t>>());
        for (size_t i = 0; i < plans.size(); ++i) {
            const auto record = reader.run_record(0, static_cast<int>(i) + 1);
            const auto& one = expected["cases"][i];
            CAPTURE(record.label, record.message);
            CHECK(record.output_ids == one["output_ids"].get<std::vector<int32_t>>());
            check_within(record.step_kl, one["step_kl"].get<std::vector<float>>(), tolerance("step_kl"));
            CHECK(std::equal(record.step_agreement.begin(), record.step_agreement.end(), one["step_agreement"].begin(),
                             one["step_agreement"].end(),
                             [](auto found, const auto& agrees) { return int{found} == agrees.template get<int>(); }));
            std::vector<float> errors;
            for (const auto& layer : one["output_error"])
                for (const auto& error : layer) errors.push_back(error.get<float>());
            check_within(record.output_error, errors, tolerance("output_error"));
        }
    }
}
