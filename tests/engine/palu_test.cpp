// Palu compared with its definition in transformers and NumPy, f64 (scripts/golden/palu.py).
#include <catch2/catch.hpp>

#include "common/stopped.h"
#include "engine/calibration.h"
#include "tests/engine/reference_runs.h"
#include "tests/own_cache.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

TEST_CASE("Palu has the reference's output, and its bytes are those of the stored numbers",
          "[palu][arithmetic][default_model]") {
    check_reference_runs("engine/palu_runs.json", [](const nlohmann::json& one) {
        auto made = plan(one["policy"], "100%");
        made.budget.share = *made.spec.own_share();
        return made;
    });
}

TEST_CASE("Palu gives the same answers in both modes and with any other runs, in f32 and bf16", "[palu]") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window", "qwen2-sliding-yarn"})
        check_independence(name, {"palu:whitening=off", "palu:whitening=prompt", "palu:group_heads=1"}, "0.6");
}

TEST_CASE("the calibration text is read once, with the same results from the cache and with one thread", "[palu]") {
    class Phases final : public engine::Progress {
     public:
        void begin(std::string_view what, int64_t, std::string_view) override { names.emplace_back(what); }
        void advance(int64_t) override {}
        void message(std::string_view) override {}
        std::stop_token stop_token() const override { return stop.get_token(); }
        std::vector<std::string> names;
        std::stop_source stop;
    };
    const auto model = small_model("qwen2-biases", kernels::DType::f32);
    const auto all_of = [&](const engine::Calibration& calibration) {
        std::vector<double> all;
        for (int layer = 0; layer < model.transformer().shape().n_layers; ++layer)
            for (const auto which : {policies::Projected::keys, policies::Projected::values}) {
                const auto moments = calibration.moments(layer, which);
                all.insert(all.end(), moments.begin(), moments.end());
            }
        return all;
    };
    const auto with = [&](Phases& phases) { return all_of(engine::Calibration(model, phases)); };
    const TemporaryFolder folder;
    std::vector<double> first;
    {
        const kvscope::testing::OwnCache cache(folder.path() / "one");
        Phases stopped, read, again;
        stopped.stop.request_stop();
        CHECK_THROWS_AS(with(stopped), Stopped);
        first = with(read);
        CHECK(read.names == std::vector<std::string>{"calibration"});
        CHECK(with(again) == first);
        CHECK(again.names.empty());
    }
    const kvscope::testing::OwnCache cache(folder.path() / "two");
    const Threads one(1);
    Phases read;
    CHECK(with(read) == first);
    CHECK(engine::find_or_make_calibration(model, read) == engine::find_or_make_calibration(model, read));
    CHECK(first.front() > 0);
}

TEST_CASE("Palu restores a bias, and refuses a model with key norms unless it uses the prompt", "[palu]") {
    // The bias of Qwen2's keys and values is not projected, so almost nothing is lost at rank d - 1.
    const auto biased = small_model("qwen2-biases", kernels::DType::f32);
    REQUIRE(biased.transformer().config().qkv_bias);
    const TemporaryFolder folder;
    const std::vector<engine::Prompt> prompts{prompt_of_ids(some_ids(biased, 60))};
    const auto nearly =
        run_experiment(folder, "b.h5", biased, prompts, {plan("palu", "0.97")}, options_of(4)).run_record(0, 1);
    REQUIRE(nearly.status == "complete");
    for (const float error : nearly.stored_key_error) CHECK(error < 0.3f);
    const auto normalised = small_model("qwen3-qk-norm", kernels::DType::f32);
    REQUIRE(normalised.transformer().config().qk_norm);
    const std::vector<engine::RunPlan> plans{plan("palu:whitening=off", "0.5"), plan("palu", "0.5")};
    const auto reader =
        run_experiment(folder, "n.h5", normalised, {prompt_of_ids(some_ids(normalised, 60))}, plans, options_of(4));
    CHECK(reader.run_record(0, 1).status == "failed");
    CHECK_THAT(reader.run_record(0, 1).message, Catch::Matchers::Contains("whitening=off"));
    CHECK(reader.run_record(0, 2).status == "complete");
}

TEST_CASE("a prompt of one token accepts a share of its bytes as budget", "[palu]") {
    const auto model = small_model("llama3-gqa-sharded", kernels::DType::f32);
    const TemporaryFolder folder;
    const auto reader =
        run_experiment(folder, "o.h5", model, {prompt_of_ids({7})},
                       {plan("palu:rank_share=0.3", "0.3"), plan("snapkv:window=8", "0.3")}, options_of(4));
    const auto found = reader.run_record(0, 1);
    CAPTURE(found.message);
    CHECK(found.status == "complete");
    CHECK(found.budget_fraction == 0.3);
    CHECK_THAT(reader.run_record(0, 2).message, Catch::Matchers::Contains("less than one entry"));
    for (const auto& problem : trace::find_problems(folder.path() / "o.h5"))
        FAIL_CHECK(problem.path << ": " << problem.found);
}
