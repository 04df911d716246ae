#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <set>

#include "common/file_text.h"
#include "common/json.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/benchmark_files.h"
#include "engine/tasks/api/task.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/longbench/scorers.h"
#include "engine/tasks/longbench/sets.h"
#include "tests/engine_tasks/made.h"

using namespace kvscope;
using namespace kvscope::engine;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;

namespace {

const std::filesystem::path folder = std::filesystem::path(KVSCOPE_TEST_DATA) / "longbench";

/// Prompts and scores of the benchmarks' own code (scripts/golden/longbench.py).
const json& golden() {
    static const json read = json::parse(file_text(folder / "golden.json"));
    return read;
}

const std::map<std::string, std::string>& jieba_files() {
    static const std::map<std::string, std::string> read{{"dictionary", file_text(folder / "dict.txt")},
                                                         {"emissions", file_text(folder / "prob_emit.py")}};
    return read;
}

std::map<std::string, std::string> with_jieba(std::map<std::string, std::string> files) {
    files.insert(jieba_files().begin(), jieba_files().end());
    return files;
}

std::string line(const json& changes = json::object()) {
    json record{{"input", "Who?"},     {"context", "A keeper."}, {"answers", {"keeper"}}, {"length", 5},
                {"dataset", "qasper"}, {"language", "en"},       {"all_classes", nullptr}};
    record.update(changes);
    return record.dump() + "\n";
}

std::string line_without(const std::string& field) {
    json record = json::parse(line());
    record.erase(field);
    return record.dump() + "\n";
}

json record_of_v2() {
    return {{"question", "Who?"}, {"choice_A", "a"},      {"choice_B", "b"},      {"choice_C", "c"},  {"choice_D", "d"},
            {"answer", "A"},      {"context", "A text."}, {"difficulty", "easy"}, {"length", "short"}};
}

std::string text_of(const TaskSample& sample) { return sample.context + sample.separator + sample.question; }

}  // namespace

TEST_CASE("LongBench's scores are those of its own code", "[longbench]") {
    const auto cuts =
        std::make_shared<const longbench::WordCuts>(jieba_files().at("dictionary"), jieba_files().at("emissions"));
    std::set<std::string> metrics;
    for (const json& of_set : golden()["scores"]) {
        const auto& set = longbench::set_named(of_set["set"].get<std::string>(), "");
        const std::vector<std::string> classes = of_set["classes"];
        REQUIRE(of_set["pairs"].size() >= 200);
        for (const json& pair : of_set["pairs"]) {
            const std::string prediction = pair["prediction"];
            const std::vector<std::string> answers = pair["answers"];
            CAPTURE(set.name, prediction, answers);
            const double upstream = pair["score"], as_kvpress = pair["as_kvpress"];
            CHECK(set.scorer({classes, cuts}).score(prediction, answers) == upstream);
            CHECK(set.scorer({classes, cuts, longbench::ScoredAs::kvpress}).score(prediction, answers) == as_kvpress);
        }
        metrics.emplace(set.metric);
    }
    for (const auto& set : longbench::sets()) CHECK(metrics.contains(std::string(set.metric)));
    CHECK(longbench::sets().front().scorer({}).scored_as == "longbench");
    CHECK(longbench::sets().front().scorer({{}, {}, longbench::ScoredAs::kvpress}).scored_as ==
          "longbench as in kvpress");
}

TEST_CASE("other files than jieba's are refused", "[longbench]") {
    const auto refuses = [](const std::string& dictionary, const std::string& emissions) {
        CHECK_THROWS_WITH(longbench::WordCuts(dictionary, emissions), Contains("use the files of jieba"));
    };
    const std::string dictionary = jieba_files().at("dictionary"), emissions = jieba_files().at("emissions");
    refuses("", emissions);
    refuses("word\n", emissions);
    refuses("word 3x n\n", emissions);
    refuses(dictionary, "");
    refuses(dictionary, "P={'B': {'\\u4e00': x}}");
    refuses(dictionary, "P={'\\u4e00': -1}");
    refuses(dictionary, "P={'B': {'\\u4e00': -1}}");
    CHECK(longbench::WordCuts(dictionary, emissions).words_of(U"").empty());
}

TEST_CASE("LongBench-v2's letters are those of its own code", "[longbench]") {
    REQUIRE(golden()["letters"].size() >= 200);
    for (const json& pair : golden()["letters"]) {
        const std::string response = pair[0];
        CAPTURE(response);
        const auto letter = longbench::chosen_letter(response);
        CHECK((letter ? json(std::string(1, *letter)) : json()) == pair[1]);
        const double is_right = pair[1] == "C" ? 1 : 0;
        CHECK(task_named("longbench-v2").scorer.score(response, std::vector<std::string>{"C"}) == is_right);
    }
}

TEST_CASE("LongBench's prompts are those of its own code", "[longbench][default_model]") {
    const std::map<std::string, std::string> files{{"samples.jsonl", file_text(folder / "samples.jsonl")},
                                                   {"v2.json", file_text(folder / "v2.json")}};
    std::map<std::string, int> n_cut;
    std::map<std::pair<std::string, int64_t>, std::map<int, TaskSample>> made_samples;
    for (const json& one : golden()["prompts"]) {
        const std::string file = one["file"];
        const int64_t max_length = one["max_length"];
        auto& samples = made_samples[{file, max_length}];
        if (samples.empty()) {
            const auto all = made(file == "v2.json" ? "longbench-v2" : "longbench",
                                  with_jieba({{"file", files.at(file)}}), {{"max_length", std::to_string(max_length)}});
            CHECK(all.left_out.empty());
            for (const TaskSample& sample : all.samples) samples[sample.number + 1] = sample;
        }
        const TaskSample& sample = samples.at(one["number"]);
        CAPTURE(sample.id, max_length);
        CHECK(text_of(sample) == one["text"].get<std::string>());
        CHECK(!sample.context.empty());
        CHECK(!sample.question.empty());
        n_cut[file] += one["n_tokens"] > one["max_length"] ? 1 : 0;
    }
    CHECK(n_cut["samples.jsonl"] > 20);
    CHECK(n_cut["v2.json"] >= 3);
}

TEST_CASE("LongBench's sets have their own answers and templates", "[longbench][default_model]") {
    const std::string text = file_text(folder / "samples.jsonl");
    const auto samples = made("longbench", with_jieba({{"file", text}})).samples;
    std::set<std::string> with_template, without, ending;
    for (const TaskSample& sample : samples) {
        const std::string set = sample.subset.substr(0, sample.subset.find('/'));
        CAPTURE(set);
        if (set != "qasper_e") CHECK(sample.n_new == golden()["n_new"].at(set).get<int64_t>());
        (sample.applies_template ? with_template : without).insert(set);
        if (sample.end_ids.empty()) continue;
        ending.insert(set);
        CHECK(sample.end_ids == default_tokenizer().encode("\n", false, true));
    }
    CHECK(with_template.size() + without.size() == golden()["n_new"].size() + 1);
    CHECK(without == std::set<std::string>{"lcc", "lsht", "repobench-p", "samsum", "trec", "triviaqa"});
    CHECK(ending == std::set<std::string>{"samsum"});
    CHECK(made("longbench", {{"file", text}}, {}, 7).samples.front().n_new == 7);

    const auto& whole = samples.front();  // of narrativeqa
    CHECK_THAT(whole.question, StartsWith("\n\nNow, answer the question based on the story asconcisely"));
    CHECK_THAT(whole.context, StartsWith("You are given a story"));
}

TEST_CASE("the question of a cut prompt begins where that of the whole prompt begins, if it is whole", "[longbench]") {
    const std::string text = file_text(folder / "samples.jsonl");
    const auto whole = made("longbench", {{"file", text}}, {{"max_length", "100000"}}).samples;
    const auto cut = made("longbench", {{"file", text}}, {{"max_length", "333"}}).samples;
    int n_cut = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
        if (text_of(whole[i]) == text_of(cut[i])) continue;
        ++n_cut;
        CAPTURE(whole[i].id, i);
        const bool is_whole = whole[i].subset.find("_e/") == std::string::npos;  // the other question is too long
        CHECK((cut[i].question == whole[i].question) == is_whole);
        CHECK(cut[i].context.size() < whole[i].context.size());
    }
    CHECK(n_cut > 10);
}

TEST_CASE("by default, a cut prompt has space for its answer and a template", "[longbench]") {
    const std::string text = file_text(folder / "samples.jsonl");
    const auto n_of = [&](const TaskSample& sample) {
        return static_cast<int64_t>(default_tokenizer().encode(text_of(sample), true, true).size());
    };
    int64_t longest = 0;
    for (const auto& sample : made("longbench", {{"file", text}}, {}, 32, 480).samples)
        longest = std::max(longest, n_of(sample));
    CHECK(longest <= 480 - 32 - 128 + 8);  // the text of the halves can have some more tokens than the halves
    CHECK(longest > 300);
    CHECK_THROWS_WITH(made("longbench", {{"file", text}}, {}, 100, 200),
                      Contains("200 tokens") && Contains("100 answer tokens") && Contains("--max-length"));
}

TEST_CASE("the files of a folder are chosen by their sets", "[longbench]") {
    const std::map<std::string, std::string> files{
        {"file/qasper.jsonl", line() + line()},
        {"file/qasper_e.jsonl", line() + line({{"length", 4000}}) + line({{"length", 8000}})},
        {"file/trec.jsonl", line({{"dataset", "trec"}, {"all_classes", {"Food", "City"}}})},
        {"file/notes.jsonl", "notes\n"}};
    const auto names = [&](const Changes& changes) {
        std::vector<std::string> found;
        for (const TaskSample& sample : made("longbench", files, changes).samples)
            found.push_back(sample.id + " " + sample.subset);
        return found;
    };
    using Names = std::vector<std::string>;
    CHECK(names({}) == Names{"qasper-1 qasper", "trec-1 trec", "qasper-2 qasper"});
    CHECK(names({{"subsets", "all_e"}}) ==
          Names{"qasper_e-1 qasper_e/0-4k", "qasper_e-2 qasper_e/4-8k", "qasper_e-3 qasper_e/8k+"});
    CHECK(names({{"subsets", "trec,qasper"}, {"samples", "1"}}) == Names{"qasper-1 qasper", "trec-1 trec"});
    std::set<int> numbers;
    for (const TaskSample& sample : made("longbench", files, {{"subsets", "all,all_e"}}).samples)
        CHECK(numbers.insert(sample.number).second);
    CHECK_THROWS_WITH(names({{"subsets", "lcc"}}), Contains("data contains no file lcc.jsonl"));
    CHECK_THROWS_WITH(names({{"subsets", "qaspr"}}), Contains("Did you mean qasper"));
    CHECK_THROWS_WITH(names({{"subsets", "dureader"}}), Contains("dureader") && Contains("jieba"));
    const std::map<std::string, std::string> chinese{{"file/vcsum.jsonl", line({{"dataset", "vcsum"}})},
                                                     {"file/qasper.jsonl", line()}};
    CHECK(made("longbench", chinese).samples.size() == 1);
    CHECK(made("longbench", with_jieba(chinese)).samples.size() == 2);
    CHECK_THROWS_WITH(made("longbench", {{"file/notes.jsonl", "notes\n"}}), Contains("expected files such as"));
    CHECK(made("longbench", {{"file", line() + line({{"dataset", "lcc"}})}}, {{"subsets", "lcc"}}).samples.size() == 1);
}

TEST_CASE("lines that are no samples are left out with their numbers", "[longbench]") {
    for (const auto& [bad, expected, found] : std::vector<std::array<std::string, 3>>{
             {"{\"input\": \n", "expected an object", "found text that is not JSON"},
             {line_without("context"), "the field \"context\"", "only \"all_classes\""},
             {line_without("answers"), "the field \"answers\"", "only \"all_classes\""},
             {line({{"answers", json::array()}}), "a list of texts as \"answers\"", "found []"},
             {line({{"answers", "keeper"}}), "a list of texts as \"answers\"", "found \"keeper\""},
             {line({{"context", " "}}), "not blank as \"context\"", "found \" \""},
             {line({{"dataset", "dureader"}}), "scores of dureader", "--dictionary"},
             {line({{"dataset", "squad"}}), "a set of LongBench", "found 'squad'"},
             {line({{"dataset", "trec"}}), "a list of texts as \"all_classes\"", "found null"},
             {line({{"dataset", "qasper_e"}, {"length", "4"}}), "a whole number as \"length\"", "found \"4\""},
             {line({{"dataset", "passage_retrieval_en"}}), "answers such as \"Paragraph 3\"", "found \"keeper\""}}) {
        CAPTURE(bad);
        const auto result = made("longbench", {{"file", line() + "\n" + bad + line()}});
        CHECK(result.samples.size() == 2);
        REQUIRE(result.left_out.size() == 1);
        CHECK_THAT(result.left_out[0], StartsWith("data/samples.jsonl:3: ") && Contains(expected) && Contains(found));
        CHECK_THROWS_WITH(made("longbench", {{"file", bad}}), StartsWith("data/samples.jsonl:1: "));
    }
    CHECK_THROWS_WITH(made("longbench", {{"file", "\n"}}), Contains("found no sample"));

    const auto of_own = made("jsonl", {{"file", R"({"context": "c", "question": "q", "answers": ["a"]})"
                                                "\n{}\n"}});
    CHECK(of_own.samples.size() == 1);
    REQUIRE(of_own.left_out.size() == 1);
    CHECK_THAT(of_own.left_out[0], StartsWith("data/samples.jsonl:2: "));
}

TEST_CASE("records of an array that are no samples are left out with their lines", "[longbench]") {
    json without_context = record_of_v2(), with_other_answer = record_of_v2();
    without_context.erase("context");
    with_other_answer["answer"] = "E";
    const std::string good = record_of_v2().dump();
    const std::string text = fmt::format("[{},\n{},\n{},\n{},\n5, {}", good, without_context.dump(),
                                         with_other_answer.dump(), good, "{\"question\": \"");
    const auto result = made("longbench-v2", {{"file", text}});
    CHECK(result.samples.size() == 2);
    CHECK(result.samples[1].id == "samples-4");
    CHECK(result.samples[1].number == 3);
    CHECK(result.samples[1].subset == "easy/short");
    REQUIRE(result.left_out.size() == 4);
    CHECK_THAT(result.left_out[0], StartsWith("data/samples.jsonl:2: ") && Contains("\"context\""));
    CHECK_THAT(result.left_out[1], StartsWith("data/samples.jsonl:3: ") && Contains("found \"E\""));
    CHECK_THAT(result.left_out[2], StartsWith("data/samples.jsonl:5: ") && Contains("found 5"));
    CHECK_THAT(result.left_out[3], StartsWith("data/samples.jsonl:5: ") && Contains("not JSON"));
    CHECK(made("longbench-v2", {{"file", text}}, {{"samples", "1"}}).left_out.empty());
    CHECK_THROWS_WITH(made("longbench-v2", {{"file", "{}"}}), Contains("expected a JSON array"));
}

TEST_CASE("the files of another benchmark are refused with its name", "[longbench]") {
    const std::string of_v2 = json::array({record_of_v2()}).dump(2);
    CHECK_THROWS_WITH(made("longbench", {{"file", of_v2}}),
                      Contains("looks like LongBench-v2") && Contains("--task longbench-v2"));
    CHECK_THROWS_WITH(made("jsonl", {{"file", line()}}),
                      Contains("looks like LongBench,") && Contains("--task longbench"));
    CHECK_THROWS_WITH(made("longbench-v2", {{"file", line()}}), Contains("looks like LongBench,"));
    CHECK_THROWS_WITH(made("longbench", {{"file", R"({"index": 0, "input": "i", "outputs": ["o"], "length": 3})"}}),
                      Contains("looks like RULER"));
    CHECK_THROWS_WITH(made("longbench", {{"file", R"({"input": "i", "title": "t", "qa_pairs": "none"})"}}),
                      Contains("looks like LooGLE"));
    CHECK_THROWS_WITH(made("longbench", {{"file", R"({"context": "c", "question": "q", "answers": ["a"]})"}}),
                      Contains("--task jsonl"));
}

TEST_CASE("without its file, a task says which one to fetch", "[longbench]") {
    CHECK_THROWS_WITH(made("longbench", {}, {{"file", ""}}),
                      Contains("data.zip") && Contains("THUDM/LongBench,") && Contains("--file"));
    CHECK_THROWS_WITH(made("longbench-v2", {}, {{"file", ""}}),
                      Contains("data.json") && Contains("THUDM/LongBench-v2,") && Contains("--file"));
    for (const std::string name : {"longbench", "longbench-v2"}) {
        CHECK_THAT(task_named(name).citation, Contains("Hugging Face dataset") && Contains("Layout: "));
        CHECK(task_named(name).needs_file);
    }
}

TEST_CASE("the elements of an array are found without parsing it", "[longbench]") {
    const auto elements = [](std::string_view text) {
        std::vector<std::string> found;
        for_each_element(text, [&](std::string_view element, int number, int line) {
            found.push_back(fmt::format("{} {} {}", number, line, element));
            return number < 3;
        });
        return found;
    };
    using Texts = std::vector<std::string>;
    CHECK(elements(R"( [{"a]\"": [1, 2]}, "b,", 3, 4] )") == Texts{R"(1 1 {"a]\"": [1, 2]})", "2 1 \"b,\"", "3 1 3"});
    CHECK(elements("\n[\n1\n,\n2") == Texts{"1 3 1\n", "2 5 2"});
    for (const std::string text : {"", "[]", "[ ]", "{}", "x", "["}) CHECK(elements(text).empty());
}
