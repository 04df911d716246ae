#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "common/file_text.h"
#include "common/json.h"
#include "engine/tasks/infinitebench/sets.h"
#include "tests/engine_tasks/made.h"

using namespace kvscope;
using namespace kvscope::engine;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using infinitebench::Set;
using nlohmann::json;

namespace {

const std::filesystem::path folder = std::filesystem::path(KVSCOPE_TEST_DATA) / "infinitebench";

/// Prompts and scores of InfiniteBench's and kvpress's own code (scripts/golden/infinitebench.py).
const json& golden() {
    static const json read = json::parse(file_text(folder / "golden.json"));
    return read;
}

std::map<std::string, std::string> all_files() {
    std::map<std::string, std::string> files;
    for (const Set& set : infinitebench::sets()) {
        const std::string name = std::string(set.name) + ".jsonl";
        files["file/" + name] = file_text(folder / name);
    }
    return files;
}

const Set& set_named(const std::string& name) {
    return *std::ranges::find(infinitebench::sets(), std::string_view(name), &Set::name);
}

std::string line(const json& changes = json::object()) {
    json record{
        {"id", 0}, {"context", "The key is 5."}, {"input", "Key?"}, {"answer", {"5"}}, {"options", json::array()}};
    record.update(changes);
    return record.dump() + "\n";
}

}  // namespace

TEST_CASE("InfiniteBench's scores are those of its own code and of kvpress", "[infinitebench]") {
    std::set<std::string> names;
    for (const json& of_set : golden()["scores"]) {
        const Set& set = set_named(of_set["set"]);
        REQUIRE(of_set["pairs"].size() >= 200);
        for (const json& pair : of_set["pairs"]) {
            const std::string prediction = pair["prediction"];
            const std::vector<std::string> answers = pair["answers"];
            CAPTURE(set.name, prediction, answers);
            CHECK(set.scorer(false).score(prediction, answers) == pair["score"].get<double>());
            CHECK(set.scorer(true).score(prediction, answers) == pair["as_kvpress"].get<double>());
        }
        names.emplace(set.name);
    }
    CHECK(names.size() == infinitebench::sets().size());
    CHECK(set_named("math_find").scorer(false).score("0", std::vector<std::string>{"no number"}) == 0);
    CHECK(set_named("passkey").scorer(true).scored_as == "infinitebench as in kvpress");
}

TEST_CASE("InfiniteBench's prompts are those of its own code", "[infinitebench][default_model]") {
    std::map<int64_t, std::map<std::string, TaskSample>> samples;
    int n_cut = 0;
    for (const json& one : golden()["prompts"]) {
        const int64_t max_length = one["max_length"];
        auto& of_length = samples[max_length];
        if (of_length.empty()) {
            auto result = made("infinitebench", all_files(), {{"max_length", std::to_string(max_length)}});
            CHECK(result.left_out.empty());
            for (TaskSample& sample : result.samples) of_length[sample.id] = std::move(sample);
            CHECK(of_length.size() == 2 * infinitebench::sets().size());
        }
        const std::string set = one["set"];
        const TaskSample& sample = of_length.at(fmt::format("{}-{}", set, one["number"].get<int>()));
        CAPTURE(sample.id, max_length);
        CHECK(sample.context + sample.separator + sample.question == one["text"].get<std::string>());
        CHECK(!sample.context.empty());
        CHECK(!sample.question.empty());
        CHECK(sample.subset == set);
        CHECK(sample.n_new == golden()["n_new"].at(set).get<int64_t>());
        n_cut += one["n_tokens"] > one["max_length"] ? 1 : 0;
    }
    CHECK(n_cut > 20);
    CHECK_FALSE(task_named("infinitebench").applies_template);
}

TEST_CASE("InfiniteBench's answers are texts, numbers or choices with their letters", "[infinitebench]") {
    std::map<std::string, TaskSample> samples;
    for (TaskSample& sample : made("infinitebench", all_files(), {{"max_length", "100000"}}).samples)
        samples[sample.id] = std::move(sample);
    using Texts = std::vector<std::string>;
    CHECK(samples["code_debug-1"].answers == Texts{"read_all", "A"});
    CHECK(samples["code_debug-2"].answers == Texts{"last", "D"});
    CHECK(samples["math_find-2"].answers == Texts{"4.5"});
    CHECK(samples["math_calc-1"].answers == Texts{"3", "7", "-1"});
    CHECK(samples["code_run-1"].answers == Texts{"-4"});
    CHECK(samples["longdialogue_qa_eng-1"].answers.size() == 2);
    CHECK(samples["longbook_qa_eng-1"].spans.empty());
    const TaskSample& retrieval = samples["passkey-1"];
    REQUIRE(retrieval.spans.size() == 2);
    for (const auto& [begin, end] : retrieval.spans)
        CHECK(retrieval.context.substr(begin, end - begin) == retrieval.answers.front());
}

TEST_CASE("the set of a file is its name, or the only one that the user names", "[infinitebench]") {
    const auto ids = [](const std::map<std::string, std::string>& files, const Changes& changes) {
        std::vector<std::string> found;
        for (const TaskSample& sample : made("infinitebench", files, changes).samples)
            found.push_back(fmt::format("{} {} {}", sample.id, sample.subset, sample.number));
        return found;
    };
    using Texts = std::vector<std::string>;
    const std::map<std::string, std::string> two{{"file/passkey.jsonl", line() + line()},
                                                 {"file/kv_retrieval.jsonl", line() + line()},
                                                 {"file/notes.jsonl", "notes"}};
    CHECK(ids(two, {}) == Texts{"passkey-1 passkey 0", "kv_retrieval-1 kv_retrieval 2", "passkey-2 passkey 12",
                                "kv_retrieval-2 kv_retrieval 14"});
    CHECK(ids(two, {{"subsets", "kv_retrieval"}, {"samples", "1"}}) == Texts{"kv_retrieval-1 kv_retrieval 2"});
    CHECK(ids({{"file", line()}}, {{"subsets", "passkey"}}) == Texts{"samples-1 passkey 0"});
    CHECK(ids({{"file", line()}}, {{"file", "data/passkey.jsonl"}}) == Texts{"passkey-1 passkey 0"});
    CHECK_THROWS_WITH(ids({{"file", line()}}, {}), Contains("samples.jsonl") && Contains("--subsets"));
    CHECK_THROWS_WITH(ids(two, {{"subsets", "math_calc"}}), Contains("data contains no file math_calc.jsonl"));
    CHECK_THROWS_WITH(ids(two, {{"subsets", "mathcalc"}}), Contains("Did you mean math_calc"));
    CHECK_THROWS_WITH(ids({{"file/notes.jsonl", "notes"}}, {}), Contains("expected files such as passkey.jsonl"));
    CHECK_THROWS_WITH(made("infinitebench", {}, {{"file", ""}}),
                      Contains("xinrongzhang2022/InfiniteBench") && Contains("--file"));
    CHECK_THAT(task_named("infinitebench").citation, Contains("MIT") && Contains("Layout: "));
}

TEST_CASE("lines that are no samples of InfiniteBench are left out with their numbers", "[infinitebench]") {
    const auto reason = [](const std::string& set, const json& changes) {
        const auto result =
            made("infinitebench",
                 {{"file", line({{"options", {"5", "b", "c", "d"}}, {"input", "The x of func_1(2)"}}) + line(changes)}},
                 {{"subsets", set}});
        CHECK(result.samples.size() == 1);
        REQUIRE(result.left_out.size() == 1);
        CHECK_THAT(result.left_out[0], StartsWith("data/samples.jsonl:2: "));
        return result.left_out[0];
    };
    CHECK_THAT(reason("passkey", {{"context", " "}}), Contains("not blank as \"context\""));
    CHECK_THAT(reason("passkey", {{"answer", json::array()}}), Contains("at least one text or number"));
    CHECK_THAT(reason("passkey", {{"answer", {{{"a", 1}}}}}), Contains("texts or numbers as \"answer\""));
    CHECK_THAT(reason("code_debug", {{"options", {"a", "b"}}}), Contains("four \"options\""));
    CHECK_THAT(reason("code_debug", {{"options", {"a", "b", "c", "d"}}}), Contains("one of the four"));
    CHECK_THAT(reason("code_run", {{"input", "func_(3) func_1() func_2(4"}}), Contains("a call such as func_3(-7)"));
    CHECK_THAT(reason("math_find", {{"input", "The of"}}), Contains("The largest number of"));
    CHECK_THROWS_WITH(
        made("infinitebench", {{"file", R"({"input": "i", "qa_pairs": "none"})"}}, {{"subsets", "passkey"}}),
        Contains("looks like LooGLE, not like InfiniteBench"));
    CHECK_THROWS_WITH(made("longbench", {{"file", line()}}), Contains("looks like InfiniteBench"));
}
