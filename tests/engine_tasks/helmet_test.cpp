#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "common/file_text.h"
#include "common/json.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/python_format.h"
#include "engine/tasks/helmet/permutation.h"
#include "engine/tasks/helmet/scorers.h"
#include "engine/tasks/helmet/sets.h"
#include "engine/tasks/rouge/porter_stemmer.h"
#include "tests/engine_tasks/made.h"

using namespace kvscope;
using namespace kvscope::engine;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;

namespace {

const std::filesystem::path helmet_folder = std::filesystem::path(KVSCOPE_TEST_DATA) / "helmet";

/// Prompts and scores of HELMET's own code (scripts/golden/helmet.py).
const json& golden_of_helmet() {
    static const json read = json::parse(file_text(helmet_folder / "golden.json"));
    return read;
}

std::string sample_file(const std::string& name) { return file_text(helmet_folder / (name + ".jsonl")); }

/// @param file name of the file, from which the set follows @param demos content; empty for none
Made helmet_samples(const std::string& file, const std::string& text, const std::string& demos,
                    const Changes& options = {}, int64_t context = 400000) {
    const Task& task = task_named("helmet");
    TaskOptions chosen{policies::ParameterValues(task.parameters), {{"file", text}}};
    chosen.values.set("file", file);
    if (!demos.empty()) {
        chosen.values.set("demos", "demos.jsonl");
        chosen.files["demos"] = demos;
    }
    for (const auto& [parameter, value] : options) chosen.values.set(parameter, value);
    Made made;
    made.samples = task.make_samples({task, chosen, default_tokenizer(), context, task.n_new, {}, &made.left_out});
    return made;
}

}  // namespace

TEST_CASE("HELMET's prompts and samples are those of its own code", "[helmet][default_model]") {
    int n_prompts = 0;
    std::set<std::string> sets;
    for (const json& one : golden_of_helmet()["prompts"]) {
        const std::string file = one["file"];
        const std::string demos = one["demos"].is_null() ? "" : sample_file(one["demos"]);
        const auto made = helmet_samples(file + ".jsonl", sample_file(file), demos,
                                         {{"samples", one["samples"].dump()},
                                          {"shots", one["shots"].dump()},
                                          {"max_length", one["max_length"].dump()}});
        CAPTURE(file, one["samples"].dump(), one["shots"].dump(), one["max_length"].dump());
        CHECK(made.left_out.empty());
        REQUIRE(made.samples.size() == one["items"].size());
        for (size_t i = 0; i < made.samples.size(); ++i) {
            const TaskSample& sample = made.samples[i];
            const json& expected = one["items"][i];
            CHECK(sample.number + 1 == expected["line"].get<int>());
            CHECK(sample.context + sample.separator + sample.question == expected["text"].get<std::string>());
            CHECK(json(sample.answers) == expected["answers"]);
            CHECK(sample.subset == one["set"].get<std::string>());
            CHECK(!sample.question.empty());
            ++n_prompts;
        }
        sets.insert(one["set"].get<std::string>());
    }
    CHECK(n_prompts >= 90);
    CHECK(sets.size() == 10);
    CHECK(!task_named("helmet").applies_template);
}

TEST_CASE("HELMET's scores of texts are those of its own code", "[helmet]") {
    for (const json& of_set : golden_of_helmet()["texts"]) {
        const std::string begin = of_set["begin"];
        const std::string prefix = of_set["set"] == "json_kv" ? "corresponding value:" : "Answer:";
        REQUIRE(of_set["pairs"].size() >= 200);
        for (const json& pair : of_set["pairs"]) {
            const std::string prediction = pair[0];
            const std::vector<std::string> answers = pair[1];
            for (size_t i = 0; i < pair[2].size(); ++i) {
                const std::string metric = golden_of_helmet()["metrics"][i];
                CAPTURE(metric, prediction, answers);
                CHECK(helmet::text_scorer(metric, begin, prefix).score(prediction, answers) ==
                      pair[2][i].get<double>());
            }
        }
    }
    CHECK(json(std::vector<std::string>(helmet::text_metrics().begin(), helmet::text_metrics().end())) ==
          golden_of_helmet()["metrics"]);
}

TEST_CASE("HELMET's recall and NDCG are those of its own code", "[helmet]") {
    const json& recall = golden_of_helmet()["recall"];
    REQUIRE(recall["pairs"].size() >= 200);
    const auto recall_scorer = helmet::ruler_recall(recall["begin"]);
    for (const json& one : recall["pairs"]) {
        CAPTURE(one.dump());
        const std::vector<std::string> answers = one[1];
        CHECK(recall_scorer.score(one[0].get<std::string>(), answers) == one[2].get<double>());
    }
    const json& rankings = golden_of_helmet()["rankings"];
    REQUIRE(rankings["pairs"].size() >= 200);
    std::vector<std::pair<std::string, int64_t>> labels;
    for (const json& one : rankings["labels"]) labels.emplace_back(one[0], one[1]);
    const std::string begin = rankings["begin"];
    const auto scorer = helmet::ndcg_at_10(labels, begin);
    for (const json& one : rankings["pairs"]) {
        CAPTURE(one.dump());
        const std::string prediction = one[0];
        CHECK(json(helmet::ranked_ids(begin + prediction)) == one[1]);
        CHECK(scorer.score(prediction, {}) == one[2].get<double>());
    }
}

TEST_CASE("permutations are NumPy's, and stems are NLTK's", "[helmet]") {
    for (const json& one : golden_of_helmet()["permutations"]) {
        const size_t n = one[0];
        auto order = helmet::permutation(n, one[1].get<uint64_t>());
        CHECK(order.size() == n);
        order.resize(one[2].size());
        CAPTURE(n);
        CHECK(json(order) == one[2]);
    }
    CHECK(helmet::permutation(0, 1).empty());
    REQUIRE(golden_of_helmet()["stems"].size() > 2000);
    for (const json& one : golden_of_helmet()["stems"]) {
        const std::string word = one[0];
        CAPTURE(word);
        CHECK(rouge::porter_stem(word) == one[1].get<std::string>());
    }
}

TEST_CASE("HELMET's sets have their own answers, metrics and files", "[helmet]") {
    const auto nq = helmet_samples("kilt/nq-dev.jsonl", sample_file("nq"), sample_file("nq_demos"));
    CHECK(nq.samples.front().n_new == 20);
    CHECK(nq.samples.front().scorer->metric == "substring_exact_match");
    CHECK_THAT(nq.samples.front().question, StartsWith("\n\nQuestion: "));
    const auto ranked = helmet_samples("msmarco/x.jsonl", sample_file("msmarco"), sample_file("msmarco_demos"));
    CHECK(ranked.samples.front().n_new == 200);
    CHECK(ranked.samples.front().scorer->metric == "NDCG@10");
    const auto recall = helmet_samples("niah_multikey_3/validation.jsonl", sample_file("niah_multikey_2"), "");
    CHECK(recall.samples.front().n_new == 100);
    CHECK(recall.samples.front().subset == "ruler_niah_mk_3");
    CHECK(recall.samples.front().scorer->metric == "ruler_recall");
    const auto named =
        helmet_samples("some.jsonl", sample_file("qa_1"), "", {{"subset", "ruler-qa-2"}, {"metric", "f1"}});
    CHECK(named.samples.front().subset == "ruler_qa_2");
    CHECK(named.samples.front().scorer->metric == "f1");

    CHECK_THROWS_WITH(helmet_samples("some.jsonl", "{}", ""), Contains("--subset") && Contains("kilt_nq"));
    CHECK_THROWS_WITH(helmet_samples("some.jsonl", "{}", "", {{"subset", "kilt_n"}}), Contains("Did you mean kilt_nq"));
    CHECK_THROWS_WITH(helmet_samples("nq.jsonl", sample_file("nq"), ""),
                      Contains("--demos") && Contains("nq-train") && Contains("--shots 0"));
    CHECK_THROWS_WITH(helmet_samples("nq.jsonl", sample_file("nq"), sample_file("nq_demos"), {{"shots", "9"}}),
                      Contains("--shots 9") && Contains("found 6"));
    CHECK_THROWS_WITH(helmet_samples("vt.jsonl", sample_file("vt"), "", {{"metric", "f1"}}),
                      Contains("ruler_recall only"));
    CHECK_THROWS_WITH(helmet_samples("", "", ""), Contains("data.tar.gz") && Contains("princeton-nlp/HELMET"));
    CHECK_THAT(task_named("helmet").citation, Contains("Hugging Face dataset") && Contains("Layout: "));
}

TEST_CASE("lines that are no samples of HELMET are left out with their numbers", "[helmet]") {
    const json good{{"question", "Who?"}, {"answers", {"Ada"}}, {"ctxs", {{{"title", "T"}, {"text", "Ada."}}}}};
    const auto with = [&](const json& changes) {
        json record = good;
        record.update(changes);
        return record.dump() + "\n";
    };
    for (const auto& [bad, expected] : std::vector<std::pair<std::string, std::string>>{
             {"{\"question\": \n", "expected an object"},
             {with({{"answers", json::array()}, {"question", "Where?"}}), "a list of texts as \"answers\""},
             {with({{"ctxs", "text"}, {"question", "Where?"}}), "a list as \"ctxs\""},
             {with({{"ctxs", {{{"title", "T"}}}}, {"question", "Where?"}}), "\"text\" in each element of \"ctxs\""},
             {with({{"question", 0.5}}), "a text or a whole number as \"question\""}}) {
        CAPTURE(bad);
        const auto made =
            helmet_samples("nq.jsonl", with(json::object()) + "\n" + bad + with(json::object()), "", {{"shots", "0"}});
        CHECK(made.samples.size() == 2);
        REQUIRE(made.left_out.size() == 1);
        CHECK_THAT(made.left_out[0], StartsWith("nq.jsonl:3: ") && Contains(expected));
    }
    const auto too_long =
        helmet_samples("nq.jsonl", with(json::object()) + with({{"question", std::string(900, 'x') + "?"}}), "",
                       {{"shots", "0"}}, 200);
    CHECK(too_long.samples.size() == 1);
    REQUIRE(too_long.left_out.size() == 1);
    CHECK_THAT(too_long.left_out[0], StartsWith("nq.jsonl:2: expected at most 180 tokens"));

    json ranked{{"qid", "1"}, {"query", "q"}, {"ctxs", {{{"id", "1"}, {"text", "t"}, {"label", "high"}}}}};
    CHECK_THROWS_WITH(helmet_samples("msmarco.jsonl", ranked.dump(), "", {{"shots", "0"}}), Contains("\"label\""));
    json keys{{"context", "c"}, {"question", "q"}, {"answer", "a"}, {"num_kvs", 1}, {"demos", {{"k"}}}};
    CHECK_THROWS_WITH(helmet_samples("json_kv.jsonl", keys.dump(), ""), Contains("pairs of key and value"));
    json rare = good;
    rare["s_pop"] = 0;
    CHECK_THROWS_WITH(helmet_samples("popqa.jsonl", rare.dump(), "", {{"shots", "0"}}),
                      Contains("above 0 as \"s_pop\""));
    CHECK_THROWS_WITH(helmet_samples("nq.jsonl", "\n", "", {{"shots", "0"}}), Contains("found no line with text"));
}

TEST_CASE("files of HELMET and files of other benchmarks are distinguished", "[helmet]") {
    CHECK_THROWS_WITH(helmet_samples("nq.jsonl", R"({"context": "c", "question": "q", "answers": ["a"]})", ""),
                      Contains("like samples of your own, not like HELMET: use --task jsonl"));
    CHECK_THROWS_WITH(helmet_samples("nq.jsonl", R"({"input": "i", "outputs": ["o"]})", ""),
                      Contains("looks like RULER"));
    const Task& other = task_named("longbench");
    for (const std::string name : {"nq", "msmarco", "json_kv", "niah_multikey_2"}) {
        TaskOptions options{policies::ParameterValues(other.parameters), {{"file", sample_file(name)}}};
        options.values.set("file", "x.jsonl");
        CHECK_THROWS_WITH(other.make_samples({other, options, default_tokenizer(), 8192, other.n_new}),
                          Contains("looks like HELMET") && Contains("--task helmet"));
    }
}

TEST_CASE("values and formats become texts as in Python", "[helmet]") {
    CHECK(python_text_of("a'b") == "a'b");
    CHECK(python_text_of(json::array({"a", "it's", "\"it's\"", "\n\\é\u200b"})) ==
          R"(['a', "it's", '"it\'s"', '\n\\é\u200b'])");
    CHECK(python_text_of(json::array({1, 2.0, 0.5, 1e16, true, nullptr, json::array()})) ==
          "[1, 2.0, 0.5, 1e+16, True, None, []]");
    CHECK(python_text_of({{"k", {1}}}) == "{'k': [1]}");
    CHECK(python_format("{a}-{b}{a}", [](std::string_view name) { return name == "a" ? "{b}" : "x"; }) == "{b}-x{b}");
}
