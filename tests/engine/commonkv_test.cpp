// CommonKV compared with its definition in transformers and NumPy, f64 (scripts/golden/commonkv.py).
#include <catch2/catch.hpp>

#include "common/stopped.h"
#include "tests/engine/reference_runs.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

TEST_CASE("CommonKV has the reference's output, and its bytes are those of the stored numbers",
          "[commonkv][arithmetic][default_model]") {
    check_reference_runs("engine/commonkv_runs.json",
                         [](const nlohmann::json& one) { return plan(one["policy"], "100%"); });
}

TEST_CASE("CommonKV gives the same answers in both modes and with any other runs, in f32 and bf16", "[commonkv]") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window", "qwen2-sliding-yarn"})
        check_independence(name, {"commonkv:recent=9,layer_step=2", "commonkv:recent=9,layer_step=2,scope=group"},
                           "0.7");
}

namespace {

/// Records the phases in order, and cancels after some steps of "weights".
class Phases final : public engine::Progress {
 public:
    explicit Phases(int64_t stop_at) : stop_at_(stop_at) {}
    void begin(std::string_view phase, int64_t, std::string_view) override { names.emplace_back(phase); }
    void advance(int64_t done) override {
        if (names.back() == "weights" && done >= stop_at_) stop_.request_stop();
    }
    void message(std::string_view) override {}
    std::stop_token stop_token() const override { return stop_.get_token(); }

    std::vector<std::string> names;

 private:
    int64_t stop_at_;
    std::stop_source stop_;
};

/// @throws Stopped
std::vector<trace::RunRecord> records(const engine::Model& model, engine::Progress& progress, bool isolated) {
    auto options = options_of(6, false, isolated);
    engine::Experiment experiment(
        model,
        engine::with_full_run_first({plan("commonkv:recent=9,layer_step=2", "0.7"),
                                     plan("commonkv:recent=9,layer_step=2", "0.6"), plan("palu:whitening=off", "0.5")}),
        options, progress);
    std::vector<trace::RunRecord> found;
    experiment.on_run = [&](int, int, const trace::RunRecord& record) { found.push_back(record); };
    experiment.run(std::vector{prompt_of_ids(some_ids(model, 70))});
    return found;
}

}  // namespace

TEST_CASE("results from weights are computed before the prompt is read, can be cancelled, and change no answer",
          "[commonkv][palu]") {
    const bool isolated = GENERATE(false, true);
    const auto dtype = GENERATE(kernels::DType::f32, kernels::DType::bf16);
    const auto model = small_model("llama3-gqa-sharded", dtype), anew = small_model("llama3-gqa-sharded", dtype);
    Phases stopped(2), whole(1 << 20), again(1 << 20);
    CHECK_THROWS_AS(records(model, stopped, isolated), Stopped);
    CHECK(stopped.names == std::vector<std::string>{"weights"});
    const auto behind_a_stop = records(model, whole, isolated), first = records(anew, again, isolated);
    CHECK(whole.names.front() == "weights");
    REQUIRE(first.size() == 4);
    REQUIRE(behind_a_stop.size() == 4);
    for (size_t i = 0; i < first.size(); ++i) {
        CAPTURE(i, first[i].message);
        CHECK(first[i].status == "complete");
        CHECK(behind_a_stop[i].output_ids == first[i].output_ids);
        CHECK(behind_a_stop[i].stored_key_error == first[i].stored_key_error);
        CHECK(behind_a_stop[i].cache_bytes == first[i].cache_bytes);
    }
}
