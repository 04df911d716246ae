#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <limits>

#include "common/file_text.h"
#include "common/json.h"
#include "engine/tasks/api/python_literal.h"
#include "engine/tasks/loogle/scorers.h"
#include "tests/engine_tasks/made.h"

using namespace kvscope;
using namespace kvscope::engine;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;

namespace {

const std::filesystem::path folder = std::filesystem::path(KVSCOPE_TEST_DATA) / "loogle";

/// Prompts and scores of LooGLE's own code (scripts/golden/loogle.py).
const json& golden() {
    static const json read = json::parse(file_text(folder / "golden.json"));
    return read;
}

std::string line_of(const json& qa_pairs) { return json{{"input", "A keeper."}, {"qa_pairs", qa_pairs}}.dump() + "\n"; }

std::string line(const auto&... pairs) { return line_of(json::array({pairs...})); }

json pair(const json& changes = json::object()) {
    json one{{"Q", "Who?"}, {"A", "A keeper."}, {"S", "A keeper."}};
    one.update(changes);
    return one;
}

std::vector<std::string> ids_of(const Made& result) {
    std::vector<std::string> ids;
    for (const TaskSample& sample : result.samples)
        ids.push_back(fmt::format("{} {} {}", sample.id, sample.number, sample.subset));
    return ids;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("LooGLE's scores of texts are those of its own code", "[loogle]") {
    REQUIRE(golden()["texts"].size() >= 200);
    for (const json& row : golden()["texts"]) {
        CAPTURE(row);
        const std::string prediction = row[0], answer = row[1];
        const auto is = [](const json& expected) {
            return Approx(expected.get<double>()).epsilon(1e-12).margin(std::numeric_limits<double>::min() * 2);
        };
        CHECK(loogle::bleu(prediction, answer, 1) == is(row[2]));
        CHECK(loogle::bleu(prediction, answer, 4) == is(row[3]));
        CHECK(loogle::rouge_n(prediction, answer, 1) == row[4].get<double>());
        CHECK(loogle::rouge_n(prediction, answer, 2) == row[5].get<double>());
        CHECK(loogle::rouge_l(prediction, answer) == row[6].get<double>());
    }
}

TEST_CASE("LooGLE's scores of masks are those of its own code", "[loogle]") {
    REQUIRE(golden()["masks"].size() >= 200);
    for (const json& row : golden()["masks"]) {
        CAPTURE(row);
        const std::string prediction = row[0];
        CHECK(loogle::exact_match(prediction, row[1]) == row[2].get<double>());
        CHECK(loogle::partial_match(prediction, row[1]) == row[3].get<double>());
    }
}

TEST_CASE("Python's literals are read as Python reads them", "[loogle]") {
    for (const json& row : golden()["literals"]) {
        const std::string text = row[0];
        CAPTURE(text);
        const auto value = read_python_literal(text);
        CHECK(value.has_value() == (!row[1].is_null() || text == "None"));
        CHECK(value.value_or(json()) == row[1]);
    }
    CHECK_FALSE(read_python_literal(""));
    CHECK_FALSE(read_python_literal("'\\N{BULLET}'"));
    CHECK_FALSE(read_python_literal(std::string(100000, '[')));
    CHECK_FALSE(read_python_literal(std::string(100000, '{')));
}

TEST_CASE("LooGLE's prompts are those of its own code, with the places of the evidence", "[loogle][default_model]") {
    std::map<std::pair<std::string, int64_t>, std::map<std::string, TaskSample>> samples;
    int n_cut = 0, n_without_evidence = 0;
    for (const json& one : golden()["prompts"]) {
        const std::string id = one["id"], set = id.substr(0, id.find('-'));
        const int64_t max_length = one["max_length"];
        auto& of_file = samples[{set, max_length}];
        if (of_file.empty()) {
            const auto result = made("loogle", {{"file", file_text(folder / (set + ".jsonl"))}},
                                     {{"file", "data/" + set + ".jsonl"},
                                      {"subsets", set == "flat" ? "shortdep_qa" : "all"},
                                      {"max_length", std::to_string(max_length)}});
            CHECK(result.left_out.empty());
            for (const TaskSample& sample : result.samples) of_file[sample.id] = sample;
        }
        CAPTURE(id, max_length);
        const TaskSample& sample = of_file.at(id);
        CHECK(sample.context + sample.separator + sample.question == one["text"].get<std::string>());
        CHECK(!sample.question.empty());
        CHECK(sample.n_new == golden()["n_new"].at(set == "flat" ? "shortdep_qa" : set).get<int64_t>());
        Texts evidence, expected = one["evidence"];
        for (const auto& [begin, end] : sample.spans) evidence.push_back(sample.context.substr(begin, end - begin));
        std::ranges::sort(expected);
        std::ranges::sort(evidence);
        CHECK(evidence == expected);
        n_cut += one["n_tokens"] > one["max_length"] ? 1 : 0;
        n_without_evidence += expected.empty() ? 1 : 0;
    }
    CHECK(n_cut > 10);
    CHECK(n_without_evidence > 5);
    CHECK_FALSE(task_named("loogle").applies_template);
}

TEST_CASE("a score of LooGLE is chosen with --metric and --match", "[loogle]") {
    const auto first = [](const std::string& set, const Changes& changes) {
        Changes all = changes;
        all.emplace_back("file", "data/" + set + ".jsonl");
        return made("loogle", {{"file", file_text(folder / (set + ".jsonl"))}}, all).samples.front();
    };
    const auto metric = [&](const std::string& set, const Changes& changes) {
        return first(set, changes).scorer.value().metric;
    };
    CHECK(metric("shortdep_qa", {}) == "rouge_l_score");
    CHECK(metric("longdep_qa", {{"metric", "bleu4"}}) == "bleu4_score");
    CHECK(metric("shortdep_cloze", {{"metric", "bleu4"}}) == "exact_match_score");
    CHECK(metric("shortdep_cloze", {{"match", "partial"}}) == "partial_match_score");
    for (const auto& [name, expected] : std::vector<std::pair<std::string, double>>{
             {"rouge-1", 2.0 / 3}, {"rouge-2", 0.5}, {"rouge-l", 2.0 / 3}, {"bleu1", 1.0 / 2}, {"bleu4", 0}}) {
        const auto sample = first("shortdep_qa", {{"metric", name}});
        CAPTURE(name);
        CHECK(sample.answers == Texts{"The keeper's friend."});
        CHECK(sample.scorer.value().score("The keeper's old dog", sample.answers) == Approx(expected).margin(1e-9));
    }
    const auto masks = first("shortdep_cloze", {});
    CHECK(masks.answers == Texts{R"({"<mask-0>":"Bob","<mask-1>":"Ann O'Neil"})"});
    CHECK(masks.scorer.value().score(R"({'<mask-0>': 'Bob', '<mask-1>': "Ann"})", masks.answers) == 0.5);
    CHECK(first("longdep_qa", {}).subset == "longdep_qa/computation");
    CHECK(first("longdep_summarization", {}).question == "\n Summarization: ");
}

TEST_CASE("each question of a document is a sample", "[loogle]") {
    const std::string two = line(pair(), pair()), one = line(pair());
    const std::map<std::string, std::string> files{{"file/shortdep_qa.jsonl", two + one},
                                                   {"file/longdep_qa.jsonl", one + one}};
    CHECK(ids_of(made("loogle", files)) == Texts{"shortdep_qa-1-1 0 shortdep_qa", "longdep_qa-1-1 1 longdep_qa",
                                                 "shortdep_qa-1-2 5 shortdep_qa", "longdep_qa-2-1 6 longdep_qa",
                                                 "shortdep_qa-2-1 10 shortdep_qa"});
    CHECK(made("loogle", files, {{"subsets", "shortdep_qa"}, {"samples", "2"}}).samples.size() == 2);

    // A question that cannot be used has a number, so that those after it keep theirs.
    const std::string text = line(pair(), pair({{"A", 5}}), 7, pair()) + "{\n" + line_of("[{'Q': 'q'") +
                             line_of(json::array()) + line(pair({{"Q", " "}})) + one;
    const auto result = made("loogle", {{"file", text}}, {{"subsets", "shortdep_qa"}});
    CHECK(ids_of(result) ==
          Texts{"samples-1-1 0 shortdep_qa", "samples-1-4 3 shortdep_qa", "samples-6-1 8 shortdep_qa"});
    REQUIRE(result.left_out.size() == 6);
    CHECK_THAT(result.left_out[0], StartsWith("data/samples.jsonl:1, question 2: ") && Contains("\"A\", found 5"));
    CHECK_THAT(result.left_out[1], StartsWith("data/samples.jsonl:1, question 3: ") && Contains("found 7"));
    CHECK_THAT(result.left_out[2], StartsWith("data/samples.jsonl:2: ") && Contains("not JSON"));
    CHECK_THAT(result.left_out[3], StartsWith("data/samples.jsonl:3: ") && Contains("Python literal"));
    CHECK_THAT(result.left_out[4], StartsWith("data/samples.jsonl:4: ") && Contains("found []"));
    CHECK_THAT(result.left_out[5], StartsWith("data/samples.jsonl:5, question 1: ") && Contains("\"Q\""));

    const auto masks = made("loogle",
                            {{"file", line(pair({{"A", json::object()}}), pair(), pair({{"A", {{"m", 1}}}}),
                                           pair({{"A", {{"m", "Bob"}}}}))}},
                            {{"subsets", "shortdep_cloze"}});
    CHECK(masks.samples.size() == 1);
    REQUIRE(masks.left_out.size() == 3);
    CHECK_THAT(masks.left_out[0], Contains("the names of masks"));
    const auto summary = made("loogle", {{"file", R"({"input": "i", "qa_pairs": "none", "output": ""}
{"input": "i", "qa_pairs": "none", "output": "o"})"}},
                              {{"subsets", "summarization"}});
    CHECK(ids_of(summary) == Texts{"samples-2-1 1 summarization"});
    CHECK_THAT(summary.left_out.at(0), Contains("\"output\""));
}

TEST_CASE("files of other benchmarks are not read as LooGLE's", "[loogle]") {
    CHECK_THROWS_WITH(
        made("loogle", {{"file", R"({"question": "q", "answer": "#### 5"})"}}, {{"subsets", "longdep_qa"}}),
        Contains("looks like GSM8K, not like LooGLE"));
    CHECK_THROWS_WITH(made("infinitebench", {{"file", line(pair())}}, {{"subsets", "passkey"}}),
                      Contains("looks like LooGLE") && Contains("--task loogle"));
    CHECK_THROWS_WITH(made("loogle", {{"file", line(pair())}}), Contains("--subsets"));
    CHECK_THROWS_WITH(made("loogle", {}, {{"file", ""}}), Contains("bigai-nlco/LooGLE") && Contains("--file"));
    CHECK_THAT(task_named("loogle").citation, Contains("Layout: ") && Contains("METEOR"));
}
