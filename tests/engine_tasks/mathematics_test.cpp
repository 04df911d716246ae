#include <array>
#include <catch2/catch.hpp>
#include <filesystem>

#include "common/file_text.h"
#include "common/json.h"
#include "engine/tasks/mathematics/answers.h"
#include "tests/engine_tasks/made.h"

using namespace kvscope;
using namespace kvscope::engine;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;

namespace {

const std::filesystem::path folder = std::filesystem::path(KVSCOPE_TEST_DATA) / "mathematics";

/// Answers of the benchmarks' own code (scripts/golden/mathematics.py).
const json& golden() {
    static const json read = json::parse(file_text(folder / "golden.json"));
    return read;
}

json or_null(const auto& found) { return found ? json(*found) : json(); }

std::vector<TaskSample> samples_of(const std::string& task, const std::string& file, const Changes& changes = {}) {
    const auto result = made(task, {{"file", file_text(folder / file)}}, changes);
    CHECK(result.left_out.empty());
    return result.samples;
}

double score(const TaskSample& sample, const std::string& prediction) {
    return sample.scorer.value().score(prediction, sample.answers);
}

}  // namespace

TEST_CASE("answers are extracted as GSM8K's and MATH's code extracts them", "[mathematics]") {
    REQUIRE(golden()["gsm8k"].size() >= 200);
    for (const json& row : golden()["gsm8k"]) {
        CAPTURE(row);
        CHECK(or_null(mathematics::number_after_hashes(row[0].get<std::string>())) == row[1]);
    }
    REQUIRE(golden()["boxed"].size() >= 200);
    for (const json& row : golden()["boxed"]) {
        CAPTURE(row);
        CHECK(or_null(mathematics::boxed_answer(row[0].get<std::string>())) == row[1]);
    }
}

TEST_CASE("answers are equivalent if they are so for MATH's code", "[mathematics]") {
    int n_equal = 0;
    REQUIRE(golden()["equivalent"].size() >= 200);
    for (const json& row : golden()["equivalent"]) {
        CAPTURE(row);
        const bool is_equal = mathematics::are_equivalent(row[0].get<std::string>(), row[1].get<std::string>());
        CHECK(is_equal == row[2].get<bool>());
        n_equal += is_equal ? 1 : 0;
    }
    CHECK(n_equal > 100);
}

TEST_CASE("MATH-500 and AIME are scored as by MATH's and kvpress's code", "[mathematics]") {
    const auto upstream = samples_of("math500", "math500.jsonl").front().scorer.value();
    const auto kvpress = samples_of("math500", "math500.jsonl", {{"score_as", "kvpress"}}).front().scorer.value();
    CHECK(upstream.scored_as == "math");
    CHECK(kvpress.scored_as == "math500 as in kvpress");
    std::array<int, 4> n_by_scores{};
    REQUIRE(golden()["math500"].size() >= 200);
    for (const json& row : golden()["math500"]) {
        CAPTURE(row);
        const std::vector<std::string> answers{row[1].get<std::string>()};
        CHECK(upstream.score(row[0].get<std::string>(), answers) == row[2].get<double>());
        CHECK(kvpress.score(row[0].get<std::string>(), answers) == row[3].get<double>());
        ++n_by_scores.at(2 * row[2].get<size_t>() + row[3].get<size_t>());
    }
    for (const int n : n_by_scores) CHECK(n > 5);

    REQUIRE(golden()["aime"].size() >= 200);
    for (const json& row : golden()["aime"]) {
        CAPTURE(row);
        const std::vector<std::string> answers{row[1].get<std::string>()};
        CHECK(task_named("aime").scorer.score(row[0].get<std::string>(), answers) == row[2].get<double>());
    }
}

TEST_CASE("problems are read from the files of GSM8K, MATH-500 and AIME", "[mathematics]") {
    const auto gsm8k = samples_of("gsm8k", "gsm8k.jsonl");
    REQUIRE(gsm8k.size() == 3);
    CHECK(gsm8k[1].id == "samples-2");
    CHECK(gsm8k[1].number == 1);
    CHECK_THAT(gsm8k[1].context, StartsWith("A harbor"));
    CHECK_THAT(gsm8k[1].question, Contains("#### 42"));
    CHECK(gsm8k[1].answers == std::vector<std::string>{"1000"});
    CHECK(score(gsm8k[1], "250 leave.\n#### 1,000") == 1);
    CHECK(score(gsm8k[1], "1000") == 0);
    CHECK(score(gsm8k[2], "#### -5 degrees") == 1);
    CHECK(samples_of("gsm8k", "gsm8k.jsonl", {{"samples", "2"}}).size() == 2);

    const auto math = samples_of("math500", "math500.jsonl");
    REQUIRE(math.size() == 2);
    CHECK(math[0].subset == "Prealgebra");
    CHECK_THAT(math[0].question, Contains("\\boxed{}"));
    CHECK(score(math[0], "It is \\boxed{3/4}.") == 1);

    const auto of_2024 = samples_of("aime", "aime2024.jsonl"), of_2025 = samples_of("aime", "aime2025.json");
    REQUIRE(of_2024.size() == 2);
    REQUIRE(of_2025.size() == 2);
    CHECK_THAT(of_2024[0].context, Contains("2^{10}"));
    CHECK(of_2024[0].answers == std::vector<std::string>{"24", "024"});
    CHECK(of_2024[1].answers == std::vector<std::string>{"399"});
    CHECK(of_2025[1].id == "samples-2");
    CHECK(of_2025[1].answers == std::vector<std::string>{"73", "073"});
    CHECK(score(of_2025[1], "\\boxed{7} or \\boxed{73}") == 1);
}

TEST_CASE("problems without an answer are left out with their lines", "[mathematics]") {
    const json problem{{"question", "Q"}, {"answer", "A\n#### 1"}};
    json without_number = problem, without_question = problem;
    without_number["answer"] = "1";
    without_question.erase("question");
    const auto result =
        made("gsm8k",
             {{"file", problem.dump() + "\n\n" + without_number.dump() + "\n" + without_question.dump() + "\n{\n"}});
    CHECK(result.samples.size() == 1);
    REQUIRE(result.left_out.size() == 3);
    CHECK_THAT(result.left_out[0],
               StartsWith("data/samples.jsonl:3: ") && Contains("#### 18") && Contains("found \"1\""));
    CHECK_THAT(result.left_out[1], StartsWith("data/samples.jsonl:4: ") && Contains("\"question\""));
    CHECK_THAT(result.left_out[2], StartsWith("data/samples.jsonl:5: ") && Contains("not JSON"));

    const auto of_aime = made("aime", {{"file", R"([{"problem": "P", "answer": 5},
{"problem": "P", "answer": "1000"}, {"problem": "P", "answer": -1}, {"problem": "P"}, {"answer": 2}])"}});
    CHECK(of_aime.samples.size() == 1);
    REQUIRE(of_aime.left_out.size() == 4);
    CHECK_THAT(of_aime.left_out[0], StartsWith("data/samples.jsonl:2: ") && Contains("from 0 to 999"));
    CHECK_THAT(of_aime.left_out[1], Contains("found -1"));
    CHECK_THAT(of_aime.left_out[2], Contains("the field \"answer\""));
    CHECK_THAT(of_aime.left_out[3], Contains("the field \"problem\""));
}

TEST_CASE("a file of other problems is refused with the name of its benchmark", "[mathematics]") {
    const std::string gsm8k = file_text(folder / "gsm8k.jsonl"), math = file_text(folder / "math500.jsonl"),
                      of_2024 = file_text(folder / "aime2024.jsonl"), of_2025 = file_text(folder / "aime2025.json");
    const auto refuses = [](const std::string& task, const std::string& text, const std::string& name) {
        CAPTURE(task, name);
        CHECK_THROWS_WITH(made(task, {{"file", text}}), Contains("looks like " + name + ","));
    };
    refuses("gsm8k", math, "MATH-500");
    refuses("gsm8k", of_2024, "AIME");
    refuses("gsm8k", of_2025, "AIME");
    refuses("math500", gsm8k, "GSM8K");
    refuses("math500", of_2025, "AIME");
    refuses("aime", gsm8k, "GSM8K");
    refuses("aime", math, "MATH-500");
    refuses("jsonl", gsm8k, "GSM8K");
    refuses("gsm8k", R"({"context": "c", "question": "q", "choice_A": "a", "answer": "A"})", "LongBench-v2");
    refuses("gsm8k", R"({"context": "c", "question": "q", "answers": ["a"]})", "samples of your own");
    for (const std::string task : {"gsm8k", "math500", "aime"}) {
        CHECK_THROWS_WITH(made(task, {}, {{"file", ""}}), Contains("fetch ") && Contains("--file"));
        CHECK_THAT(task_named(task).citation, Contains("Layout: "));
        CHECK_THROWS_WITH(made(task, {{"file", "[]"}}), Contains("found none"));
    }
}
