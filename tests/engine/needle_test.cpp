#include "engine/needle.h"

#include <catch2/catch.hpp>
#include <map>

#include "common/json.h"
#include "engine/common/engine_error.h"
#include "engine/head_profile.h"
#include "engine/task_evaluation.h"
#include "policies/methods/head_importance.h"
#include "tests/engine/experiment_on_disk.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
using Catch::Matchers::Contains;

TEST_CASE("a needle prompt has its length, its depth and its answer once", "[needle][default_model]") {
    const auto& tokenizer = default_model_f32().tokenizer();
    for (const int64_t length : {100, 500, 2000}) {
        for (const double depth : {0.0, 0.25, 1.0}) {
            for (const std::string text : {"", "One is here. Is two there?\nThree went 3.5 miles! Four."}) {
                CAPTURE(length, depth, text);
                const auto one =
                    engine::make_needle_prompt(tokenizer, {engine::NeedleKind::retrieval, length, depth, 7, text});
                const auto n = static_cast<int64_t>(tokenizer.encode(one.context, false, false).size());
                CHECK(n <= length);
                CHECK(n >= length - 20);
                const size_t at = one.context.find(one.needle);
                REQUIRE(at != std::string::npos);
                CHECK(one.context.find(one.answer) == at + one.needle.find(one.answer));
                CHECK(one.context.find(one.answer, at + one.needle.size()) == std::string::npos);
                const double place =
                    static_cast<double>(at) / static_cast<double>(one.context.size() - one.needle.size());
                CHECK(place == Approx(depth).margin(0.1));
                CHECK(one.question.find(one.answer) == std::string::npos);
            }
        }
    }
    const auto a = engine::make_needle_prompt(tokenizer, {.seed = 1}),
               again = engine::make_needle_prompt(tokenizer, {.seed = 1});
    CHECK(a.context == again.context);
    CHECK(a.answer != engine::make_needle_prompt(tokenizer, {.seed = 2}).answer);
    CHECK_THROWS_WITH(engine::make_needle_prompt(tokenizer, {.n_tokens = 5}),
                      Contains("5 tokens leave no space for a sentence"));
    CHECK_THROWS_WITH(engine::make_needle_prompt(tokenizer, {.depth = 1.5}), Contains("1.5"));
}

TEST_CASE("headkv can read the profile of heads, and only few are retrieval heads",
          "[needle][model][arithmetic][default_model]") {
    engine::HeadProfileOptions options;
    options.lengths = {200};
    options.depths = {0.3, 0.7};
    options.n_seeds = 1;
    options.n_new = 24;
    engine::SilentProgress progress;
    const auto shape = default_model_f32().transformer().shape();
    for (const auto measure : {engine::HeadMeasure::retrieval, engine::HeadMeasure::reasoning}) {
        options.measure = measure;
        engine::HeadProfile profile;
        try {
            profile = engine::profile_heads(default_model_f32(), options, progress);
        } catch (const engine::RunError& error) {
            CHECK(measure == engine::HeadMeasure::reasoning);  // the model may fail at a step of reasoning
            CHECK_THAT(error.what(), Contains("none of the 2 needle prompts"));
            continue;
        }
        REQUIRE(profile.scores.size() == static_cast<size_t>(shape.n_layers * shape.n_heads));
        const TemporaryFolder folder;
        const auto path = folder.path() / "heads.json";
        std::ofstream(path) << engine::to_headkv_json(profile, shape);
        const auto importance = policies::read_head_importance(path.string(), shape);
        REQUIRE(importance.size() == profile.scores.size());
        const double largest = *std::max_element(importance.begin(), importance.end());
        CHECK(largest > 0.1);
        const auto strong =
            std::count_if(importance.begin(), importance.end(), [&](double value) { return value > 0.5 * largest; });
        CHECK(strong < static_cast<std::ptrdiff_t>(importance.size()) / 4);
    }
}

TEST_CASE("heads are measured on the model's device, and an error says if no answer is correct", "[needle]") {
    engine::HeadProfileOptions options;
    options.lengths = {250};
    options.depths = {0.5};
    options.n_seeds = 1;
    options.n_new = 4;
    engine::SilentProgress progress;
    for (const auto measure : {engine::HeadMeasure::retrieval, engine::HeadMeasure::reasoning}) {
        options.measure = measure;
        CHECK_THROWS_WITH(engine::profile_heads(tiny_model(), options, progress),
                          Contains("none of the 1 needle prompts was answered correctly"));
    }
}

TEST_CASE("a task is evaluated, kept on disk sample by sample, and resumed", "[needle][model][default_model]") {
    const auto& model = default_model_f32();
    engine::NeedleTask task;
    task.lengths = {150};
    task.depths = {0.2, 0.8};
    task.n_seeds = 1;
    task.prompt.n_new = 16;
    const auto samples = engine::make_needle_samples(model, task);
    REQUIRE(samples.size() == 2);
    auto options = options_of(16, false);
    options.record = false;
    const auto plans =
        engine::with_full_run_first({plan("snapkv:window=8", "100%"), plan("random", "16"), plan("snapkv", "8")});
    const TemporaryFolder folder;
    const auto path = folder.path() / "niah.h5";
    engine::SilentProgress progress;
    int n_called = 0;
    {
        trace::Writer writer(path, "{}");
        engine::evaluate_task(model, "niah", std::span(samples).first(1), plans, options, writer, progress,
                              [&](size_t, std::span<const trace::ResultRow>, double) { ++n_called; });
    }
    trace::Writer writer(path, "{}");
    engine::evaluate_task(model, "niah", samples, plans, options, writer, progress,
                          [&](size_t i, std::span<const trace::ResultRow>, double) {
                              CHECK(i == 1);
                              ++n_called;
                          });
    writer.finish();
    CHECK(n_called == 2);
    const auto rows = trace::Reader(path).results("niah");
    REQUIRE(rows.size() == 8);
    for (size_t i = 0; i < rows.size(); i += 4) {
        CHECK(rows[i].policy == "full");
        CHECK(rows[i].score == 1.0);
        CHECK(rows[i + 1].score == 1.0);
        CHECK(rows[i + 1].prediction == rows[i].prediction);
        CHECK(rows[i + 1].kept_share == 1.0);
        CHECK(rows[i + 2].score == 0.0);
        CHECK(rows[i + 2].kept_share < 0.2);
        CHECK_THAT(rows[i + 3].status, Catch::Matchers::StartsWith("failed: a budget of 8 entries"));
        CHECK(nlohmann::json::parse(rows[i].answers_json)[0] == samples[i / 4].answer);
    }
}

TEST_CASE("more samples are added to the existing ones", "[needle][model][default_model]") {
    engine::NeedleTask task;
    task.lengths = {100, 150};
    task.depths = {0.2, 0.8};
    task.seed = 11;
    std::map<int, std::string> texts;
    for (const int n : {1, 2, 3, 4, 7}) {
        task.n_seeds = n;
        const auto samples = engine::make_needle_samples(default_model_f32(), task);
        REQUIRE(samples.size() == static_cast<size_t>(4 * n));
        for (size_t i = 0; i < samples.size(); ++i) {
            if (i > 0) CHECK(samples[i - 1].number < samples[i].number);
            const auto [known, is_new] = texts.emplace(samples[i].number, samples[i].id + samples[i].prompt.text);
            CHECK(known->second == samples[i].id + samples[i].prompt.text);
        }
        CHECK(texts.size() == samples.size());
    }
}
