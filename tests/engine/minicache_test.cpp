// MiniCache compared with its definition in transformers and NumPy, f64 (scripts/golden/minicache.py).
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/engine/reference_runs.h"
#include "tests/policies/throwaway_policies.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

struct AtOnce : policies::throwaway::KeepFirst {
    explicit AtOnce(const policies::ParameterValues&) {}
};

/// Keeps the first entries and decides two layers at a time. Fails at one if requested.
class Waits : public policies::throwaway::KeepFirst, public policies::DecidesInOrder {
 public:
    explicit Waits(const policies::ParameterValues& values) : fault_(values.text("fault")) {}
    int decided_at(int layer) const override {
        const int at = std::min(layer | 1, context_.shape.n_layers - 1);
        return fault_ == "order" && layer == 2 ? 0 : at;
    }
    void observe(policies::LayerObservations& observations) override {
        if (fault_ == "observe" && observations.layer == 1) throw std::runtime_error("it does not like layer 1");
    }
    policies::Selection select(policies::LayerObservations& observations) override {
        if (fault_ == "select" && observations.layer == 2) throw std::runtime_error("it does not like layer 2");
        return KeepFirst::select(observations);
    }

 private:
    std::string fault_;
};

}  // namespace

TEST_CASE("MiniCache has the reference's output, and its bytes are those of the stored numbers",
          "[minicache][arithmetic][default_model]") {
    check_reference_runs(
        "engine/minicache_runs.json", [](const nlohmann::json& one) { return plan(one["policy"], "100%"); },
        [](const trace::RunRecord& record, const nlohmann::json& one) {
            // The deeper layer of a pair stores the directions.
            for (const auto& pair : one["pairs"]) {
                const size_t a = pair[0], b = pair[1];
                CHECK(record.cache_bytes[a] == one["bytes"][b].get<uint64_t>() * sizeof(float));
                CHECK(record.cache_bytes[b] == one["bytes"][a].get<uint64_t>() * sizeof(float));
            }
            for (size_t layer = 0; layer < one["pairs"].back()[0].get<size_t>(); ++layer)
                CHECK(record.cache_bytes[layer] == one["bytes"][layer].get<uint64_t>() * sizeof(float));
        });
}

TEST_CASE("MiniCache gives the same answers in both modes and with any other runs, in f32 and bf16", "[minicache]") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window", "qwen2-sliding-yarn"})
        check_independence(name, {"minicache", "minicache:retained=0.3,t=0.5"}, "0.85");
}

TEST_CASE("a run that decides layers later keeps the same entries, and fails alone", "[minicache][default_model]") {
    static const auto definition = policies::throwaway::definition<Waits>(
        "waits", {policies::choice_parameter("fault", {"none", "order", "observe", "select"}, "none", "What fails.")});
    static const auto at_once = policies::throwaway::definition<AtOnce>("at-once");
    const auto& model = default_model_f32();
    std::vector<engine::RunPlan> plans{{policies::parse_parameters(at_once, ""), policies::parse_budget("40")}};
    for (const char* fault : {"none", "order", "observe", "select"})
        plans.push_back(
            {policies::parse_parameters(definition, std::string("fault=") + fault), policies::parse_budget("40")});
    for (const bool isolated : {false, true}) {
        const TemporaryFolder folder;
        const auto reader = run_experiment(folder, "w.h5", model, {prompt_of_ids(some_ids(model, 90))}, plans,
                                           options_of(4, true, isolated));
        const auto expected = reader.run_record(0, 1), found = reader.run_record(0, 2);
        REQUIRE(found.status == "complete");
        CHECK(found.kept_indices == expected.kept_indices);
        CHECK(found.output_ids == expected.output_ids);
        CHECK(same_bits(found.step_kl, expected.step_kl));
        CHECK(same_bits(found.attention_kept, expected.attention_kept));
        CHECK(found.cache_bytes == expected.cache_bytes);
        CHECK_THAT(reader.run_record(0, 3).message, Catch::Matchers::Contains("layer 2 cannot be decided at layer 0"));
        CHECK_THAT(reader.run_record(0, 4).message, Catch::Matchers::Contains("layer 1: it does not like layer 1"));
        CHECK_THAT(reader.run_record(0, 5).message, Catch::Matchers::Contains("layer 2: it does not like layer 2"));
    }
}
