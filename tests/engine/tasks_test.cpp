#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
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

namespace {

using Changes = std::vector<std::pair<std::string, std::string>>;

engine::TaskOptions options_of_task(const std::string& name, const Changes& changes) {
    engine::TaskOptions options{policies::ParameterValues(engine::task_named(name).parameters)};
    for (const auto& [parameter, text] : changes) options.values.set(parameter, text);
    return options;
}

std::vector<engine::TaskSample> samples_of(const std::string& name, const engine::TaskOptions& options) {
    const auto& task = engine::task_named(name);
    return task.make_samples({task, options, default_model_f32().tokenizer(), 8192, 24});
}

engine::TaskSample needle_sample(const Changes& changes, const std::string& haystack = "") {
    auto options = options_of_task("niah", {{"samples", "1"}, {"depths", "0.5"}});
    for (const auto& [parameter, text] : changes) options.values.set(parameter, text);
    if (!haystack.empty()) options.files["haystack"] = haystack;
    return samples_of("niah", options)[0];
}

std::vector<engine::TaskSample> samples_of_lines(const std::string& lines, const Changes& changes = {}) {
    auto options = options_of_task("jsonl", {{"file", "mine.jsonl"}});
    for (const auto& [parameter, text] : changes) options.values.set(parameter, text);
    options.files["file"] = lines;
    return samples_of("jsonl", options);
}

}  // namespace

TEST_CASE("a needle prompt has its length, its depth and its answer once", "[needle][default_model]") {
    const auto& tokenizer = default_model_f32().tokenizer();
    for (const int64_t length : {100, 500, 2000}) {
        for (const double depth : {0.0, 0.25, 1.0}) {
            for (const std::string text : {"", "One is here. Is two there?\nThree went 3.5 miles! Four."}) {
                CAPTURE(length, depth, text);
                const auto one = needle_sample(
                    {{"lengths", std::to_string(length)}, {"depths", policies::to_text(depth)}, {"seed", "7"}}, text);
                const auto n = static_cast<int64_t>(tokenizer.encode(one.context, false, false).size());
                CHECK(n <= length);
                CHECK(n >= length - 20);
                REQUIRE(one.spans.size() == 1);
                const auto [at, end] = one.spans[0];
                const std::string needle = one.context.substr(at, end - at), &answer = one.answers[0];
                CHECK_THAT(needle, Catch::Matchers::StartsWith("The special magic number"));
                CHECK(one.context.find(answer) == at + needle.find(answer));
                CHECK(one.context.find(answer, end) == std::string::npos);
                const double place = static_cast<double>(at) / static_cast<double>(one.context.size() - needle.size());
                CHECK(place == Approx(depth).margin(0.1));
                CHECK(one.question.find(answer) == std::string::npos);
            }
        }
    }
    const Changes kilotoken{{"lengths", "1000"}, {"seed", "1"}};
    const auto a = needle_sample(kilotoken), again = needle_sample(kilotoken);
    CHECK(a.context == again.context);
    CHECK(a.answers != needle_sample({{"lengths", "1000"}, {"seed", "2"}}).answers);
    CHECK_THROWS_WITH(needle_sample({{"lengths", "5"}}),
                      Contains("--lengths 5: the needle has") && Contains("use a greater length"));
    CHECK_THROWS_WITH(needle_sample({{"depths", "1.5"}}), Contains("1.5"));
    CHECK_THROWS_WITH(needle_sample({{"lengths", "100,100"}}), Contains("given twice"));
}

TEST_CASE("the spans of a needle that needs reasoning are its two facts", "[needle][default_model]") {
    const auto sample = needle_sample({{"lengths", "300"}, {"needle", "reasoning"}});
    REQUIRE(sample.spans.size() == 2);
    std::vector<std::string> facts;
    for (const auto& [begin, end] : sample.spans) facts.push_back(sample.context.substr(begin, end - begin));
    CHECK_THAT(facts[0], Contains(" owns the ") && Catch::Matchers::EndsWith("."));
    CHECK_THAT(facts[1], Catch::Matchers::StartsWith("The special magic number") &&
                             Catch::Matchers::EndsWith(sample.answers[0] + "."));
}

TEST_CASE("an answer's tokens leave out the sentence around it, but not a fact without the answer",
          "[needle][default_model]") {
    const auto text_of_answer = [](const std::string& needle) {
        const auto samples = engine::prepare_samples(
            default_model_f32(), engine::task_named("niah"),
            options_of_task("niah", {{"lengths", "300"}, {"depths", "0.5"}, {"samples", "1"}, {"needle", needle}}), {});
        const engine::Prompt& prompt = samples.at(0).prompt;
        CHECK(std::ranges::includes(prompt.evidence, prompt.answer_tokens));
        std::string text;
        for (const uint32_t token : prompt.answer_tokens) text += prompt.token_text[token];
        CHECK_THAT(text, Contains(samples[0].answers[0]));
        return text;
    };
    CHECK_THAT(text_of_answer("retrieval"), !Contains("special") && !Contains("number"));
    CHECK_THAT(text_of_answer("reasoning"), Contains(" owns the ") && !Contains("special"));
}

TEST_CASE("a user's samples are read from lines of JSON", "[default_model]") {
    const std::string good = R"({"context": "It rains in Oslo.", "question": "Where?", "answers": ["Oslo", "Norway"]})";
    const auto samples = samples_of_lines(good + "\n\n" + good + "\r\n" + good);
    REQUIRE(samples.size() == 3);
    CHECK(samples[1].id == "mine-3");
    CHECK(samples[1].number == 2);
    CHECK(samples[1].context == "It rains in Oslo.");
    CHECK(samples[1].question == "Where?");
    CHECK(samples[1].answers == std::vector<std::string>{"Oslo", "Norway"});
    CHECK(samples[1].spans == std::vector<std::pair<size_t, size_t>>{{12, 16}});
    CHECK(std::isnan(samples[1].depth));
    CHECK(samples_of_lines(good + "\n" + good, {{"samples", "1"}}).size() == 1);
    for (const auto& [line, expected, found] : std::vector<std::array<std::string, 3>>{
             {"{", "expected an object", "found text that is not JSON"},
             {"[1]", "expected an object", "found [1]"},
             {R"({"question": "?", "answers": ["a"]})", "\"context\"", R"(found only "answers", "question")"},
             {R"({"context": " ", "question": "?", "answers": ["a"]})", "\"context\"", "found \" \""},
             {R"({"context": "c", "question": 3, "answers": ["a"]})", "\"question\"", "found 3"},
             {R"({"context": "c", "question": "?", "answers": []})", "\"answers\"", "found []"},
             {R"({"context": "c", "question": "?", "answers": [1]})", "\"answers\"", "found [1]"},
             {R"({"context": "c", "question": "?", "answers": null})", "\"answers\"", "found null"}}) {
        CAPTURE(line);
        CHECK_THROWS_WITH(samples_of_lines(good + "\n" + line),
                          Catch::Matchers::StartsWith("mine.jsonl:2: ") && Contains(expected) && Contains(found));
    }
    CHECK_THROWS_WITH(samples_of_lines("\n \n"), Contains("mine.jsonl") && Contains("found no line"));
    CHECK_THROWS_WITH(samples_of("jsonl", options_of_task("jsonl", {})), Contains("--file"));
}

TEST_CASE("scorers count answers in a prediction") {
    const std::vector<std::string> answers{"Oslo", "Norway", "42"};
    CHECK(engine::string_match_all().score("in OSLO, 42 days", answers) == Approx(2.0 / 3));
    CHECK(engine::string_match_all().score("oslo norway 42", answers) == 1.0);
    CHECK(engine::string_match_part().score("norway", answers) == 1.0);
    CHECK(engine::string_match_part().score("4 2", answers) == 0.0);
    CHECK_THROWS_WITH(engine::task_named("nia"), Contains("Did you mean niah"));
}

TEST_CASE("headkv can read the profile of heads, and only few are retrieval heads",
          "[needle][model][arithmetic][default_model]") {
    const auto needles = options_of_task("niah", {{"lengths", "200"}, {"depths", "0.3,0.7"}, {"samples", "1"}});
    constexpr int64_t n_new = 24;
    engine::SilentProgress progress;
    const auto shape = default_model_f32().transformer().shape();
    for (const auto measure : {engine::HeadMeasure::retrieval, engine::HeadMeasure::reasoning}) {
        const auto samples = engine::prepare_head_profile(default_model_f32(), measure, needles, {.n_new = n_new});
        CHECK(samples.size() == 2);
        engine::HeadProfile profile;
        try {
            profile = engine::profile_heads(default_model_f32(), measure, samples, n_new, progress);
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
    const auto needles = options_of_task("niah", {{"lengths", "250"}, {"depths", "0.5"}, {"samples", "1"}});
    constexpr int64_t n_new = 4;
    engine::SilentProgress progress;
    for (const auto measure : {engine::HeadMeasure::retrieval, engine::HeadMeasure::reasoning}) {
        const auto samples = engine::prepare_head_profile(tiny_model(), measure, needles, {.n_new = n_new});
        CHECK_THROWS_WITH(engine::profile_heads(tiny_model(), measure, samples, n_new, progress),
                          Contains("none of the 1 needle prompts was answered correctly"));
    }
}

TEST_CASE("a task is evaluated, kept on disk sample by sample, and resumed", "[needle][model][default_model]") {
    const auto& model = default_model_f32();
    const auto& task = engine::task_named("niah");
    const auto samples = engine::prepare_samples(
        model, task, options_of_task("niah", {{"lengths", "150"}, {"depths", "0.2,0.8"}, {"samples", "1"}}),
        {.n_new = 16});
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
        engine::evaluate_task(model, task, std::span(samples).first(1), plans, options, writer, progress,
                              [&](size_t, std::span<const trace::ResultRow>, double) { ++n_called; });
    }
    trace::Writer writer(path, "{}");
    engine::evaluate_task(model, task, samples, plans, options, writer, progress,
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
        CHECK(nlohmann::json::parse(rows[i].answers_json.string())[0] == samples[i / 4].answers[0]);
    }
}

TEST_CASE("more samples are added to the existing ones", "[needle][model][default_model]") {
    std::map<int, std::string> texts;
    for (const int n : {1, 2, 3, 4, 7}) {
        const auto samples = engine::prepare_samples(
            default_model_f32(), engine::task_named("niah"),
            options_of_task(
                "niah",
                {{"lengths", "100,150"}, {"depths", "0.2,0.8"}, {"seed", "11"}, {"samples", std::to_string(n)}}),
            {});
        REQUIRE(samples.size() == static_cast<size_t>(4 * n));
        for (size_t i = 0; i < samples.size(); ++i) {
            if (i > 0) CHECK(samples[i - 1].number < samples[i].number);
            const auto [known, is_new] = texts.emplace(samples[i].number, samples[i].id + samples[i].prompt.text);
            CHECK(known->second == samples[i].id + samples[i].prompt.text);
        }
        CHECK(texts.size() == samples.size());
    }
}

TEST_CASE("an answer ends at the end tokens of its sample, of which none is its first token", "[needle]") {
    engine::SilentProgress progress;
    const auto answer = [&](std::vector<int32_t> end_ids) {
        auto options = options_of(8, false);
        options.ignore_eos = true;
        options.end_ids = std::move(end_ids);
        engine::Experiment experiment(tiny_model(), engine::with_full_run_first({}), options, progress);
        std::vector<int32_t> ids;
        experiment.on_run = [&](int, int, const trace::RunRecord& record) { ids = record.output_ids; };
        std::vector<int32_t> prompt(40);
        for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(20 + 7 * i % 60);
        const std::vector prompts{prompt_of_ids(prompt)};
        experiment.run(prompts);
        return ids;
    };
    const auto whole = answer({});
    REQUIRE(whole.size() == 8);
    const auto other = std::ranges::find_if(whole, [&](int32_t id) { return id != whole[0]; });
    REQUIRE(other != whole.end());
    CHECK(answer({*other}) == std::vector<int32_t>(whole.begin(), other + 1));
    const auto ended = answer({whole[0]});
    REQUIRE(!ended.empty());
    CHECK(ended[0] != whole[0]);
}
