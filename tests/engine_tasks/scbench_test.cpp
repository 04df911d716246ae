#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "common/file_text.h"
#include "common/json.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/scbench/sets.h"
#include "tests/engine_tasks/made.h"

using namespace kvscope;
using namespace kvscope::engine;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;

namespace {

const std::filesystem::path scbench_folder = std::filesystem::path(KVSCOPE_TEST_DATA) / "scbench";

/// Prompts and scores of SCBench's own code (scripts/golden/scbench.py).
const json& golden_of_scbench() {
    static const json read = json::parse(file_text(scbench_folder / "golden.json"));
    return read;
}

std::string file_of_set(const std::string& set) { return file_text(scbench_folder / (set + ".jsonl")); }

/// @param set also the name of the file
Made scbench_samples(const std::string& set, const std::string& text, const Changes& settings = {},
                     int64_t context = 400000, int64_t n_new = 0) {
    const Task& task = task_named("scbench");
    TaskOptions options{policies::ParameterValues(task.parameters), {{"file", text}}};
    options.values.set("file", set.empty() ? "" : set + ".jsonl");
    for (const auto& [parameter, value] : settings) options.values.set(parameter, value);
    Made made;
    made.samples = task.make_samples(
        {task, options, default_tokenizer(), context, n_new > 0 ? n_new : task.n_new, {}, &made.left_out});
    return made;
}

std::string record_of(const json& turn) {
    return json{{"context", "A text."}, {"multi_turns", json::array({turn})}}.dump() + "\n";
}

}  // namespace

TEST_CASE("SCBench's prompts are those of its own code", "[scbench][default_model]") {
    std::map<std::string, int> n_cut;
    for (const json& one : golden_of_scbench()["prompts"]) {
        const std::string set = one["set"], mode = one["mode"];
        const auto made =
            scbench_samples(set, file_of_set(set), {{"mode", mode}, {"max_length", one["max_length"].dump()}});
        CAPTURE(set, mode, one["max_length"].dump());
        CHECK(made.left_out.empty());
        REQUIRE(made.samples.size() == one["samples"].size());
        for (size_t i = 0; i < made.samples.size(); ++i) {
            const TaskSample& sample = made.samples[i];
            const json& expected = one["samples"][i];
            const int line = expected["line"], turn = expected["turn"];
            CHECK(sample.id == set + "-" + std::to_string(line) + "-" + std::to_string(turn));
            CHECK(sample.context + sample.separator + sample.question == expected["text"].get<std::string>());
            CHECK(sample.n_new == expected["n_new"].get<int64_t>());
            CHECK(sample.applies_template == (mode == "multi-request"));
            CHECK(!sample.question.empty());
            // All questions share the context, so that one compressed cache can answer them.
            CHECK(sample.context == made.samples[i - i % 4].context);
        }
        if (one["max_length"] == 201)
            n_cut[mode] += made.samples[4].context.size() <
                                   scbench_samples(set, file_of_set(set), {{"mode", mode}}).samples[4].context.size()
                               ? 1
                               : 0;
    }
    CHECK(n_cut["multi-turn"] == 10);
    CHECK(n_cut["multi-request"] == 10);
}

TEST_CASE("SCBench's scores are those of its own code", "[scbench]") {
    std::set<std::string> sets;
    for (const json& of_set : golden_of_scbench()["scores"]) {
        const std::string set = of_set["set"];
        REQUIRE(of_set["pairs"].size() >= 200);
        std::string text;
        for (const json& pair : of_set["pairs"]) text += record_of(pair[0]);
        const auto made = scbench_samples(set, text);
        REQUIRE(made.samples.size() == of_set["pairs"].size());
        for (size_t i = 0; i < made.samples.size(); ++i) {
            const json& pair = of_set["pairs"][i];
            CAPTURE(set, pair.dump());
            const TaskSample& sample = made.samples[i];
            CHECK(sample.scorer->score(pair[1].get<std::string>(), sample.answers) == pair[2].get<double>());
            CHECK(sample.scorer->scored_as == "scbench");
        }
        sets.insert(set);
    }
    CHECK(sets.size() == scbench::sets().size());
    for (const json& one : golden_of_scbench()["upper"]) {
        const auto upper = longbench::in_upper_case(longbench::characters_of(one[0].get<std::string>()));
        CAPTURE(one.dump());
        CHECK(upper == longbench::characters_of(one[1].get<std::string>()));
    }
}

TEST_CASE("an answer is its characters for SCBench's code, or one text", "[scbench]") {
    const auto score = [](const std::string& set, const std::string& score_as) {
        const auto sample =
            scbench_samples(set, record_of({{"input", "?"}, {"answer", "abc"}}), {{"score_as", score_as}}).samples[0];
        CHECK(sample.answers == std::vector<std::string>{"abc"});
        CHECK(sample.scorer->scored_as == (score_as == "whole" ? "scbench with whole answers" : "scbench"));
        return sample.scorer->score("c", sample.answers);
    };
    CHECK(score("scbench_many_shot", "upstream") == 1);
    CHECK(score("scbench_many_shot", "whole") == 0);
    CHECK(score("scbench_qa_chn", "upstream") == 1);
    CHECK(score("scbench_qa_chn", "whole") == 0.5);
    CHECK(score("scbench_vt", "upstream") == 0.33);
    CHECK(score("scbench_vt", "whole") == 0);
    CHECK(score("scbench_qa_eng", "upstream") == 0);
}

TEST_CASE("SCBench's turns, subsets and lengths", "[scbench]") {
    const std::string needles = file_of_set("scbench_summary_with_needles");
    const auto all =
        scbench_samples("scbench_summary_with_needles", needles, {{"turns", "3"}, {"samples", "1"}}).samples;
    REQUIRE(all.size() == 3);
    CHECK(all[1].subset == "scbench_summary_with_needles/scbench_passkey/turn 2");
    CHECK(all[1].scorer->metric == "passkey");
    CHECK(all[2].subset == "scbench_summary_with_needles/scbench_summary/turn 3");
    CHECK_THAT(all[2].question, Contains(all[0].answers[0] + "\n\n") && Contains(all[1].answers[0] + "\n\n"));
    const auto apart = scbench_samples("some", file_of_set("scbench_kv"),
                                       {{"subset", "scbench-kv"}, {"mode", "multi-request"}, {"turns", "2"}});
    REQUIRE(apart.samples.size() == 4);
    CHECK(apart.samples[3].subset == "scbench_kv");
    std::set<int> numbers;
    for (const auto& sample : apart.samples) numbers.insert(sample.number);
    CHECK(numbers == std::set<int>{0, 1, 64, 65});

    // The context has space for the answers of all turns: 700 - 4 * 30 tokens, with the first question.
    const auto cut = scbench_samples("scbench_vt", file_of_set("scbench_vt"), {}, 700).samples;
    const auto n_tokens = default_tokenizer().encode(cut[4].context + cut[4].question, true, true).size();
    CHECK(n_tokens <= 580);
    CHECK(n_tokens > 400);
    CHECK_THROWS_WITH(scbench_samples("scbench_kv", file_of_set("scbench_kv"), {}, 600),
                      Contains("600 tokens") && Contains("4 turns") && Contains("--max-length"));
    CHECK(scbench_samples("scbench_kv", file_of_set("scbench_kv"), {}, 600, 7).samples[0].n_new == 7);
}

TEST_CASE("lines that are no records of SCBench are left out with their numbers", "[scbench]") {
    const json good{{"input", "The sum is"}, {"answer", "7"}};
    const auto with = [&](const json& changes) {
        json turn = good;
        turn.update(changes);
        return record_of(turn);
    };
    for (const auto& [set, bad, expected] : std::vector<std::array<std::string, 3>>{
             {"kv", "{\"context\": \n", "expected an object"},
             {"kv", "{\"context\": \"c\"}\n", "the field \"multi_turns\""},
             {"kv", "{\"context\": \"c\", \"multi_turns\": []}\n", "a list as \"multi_turns\""},
             {"kv", "{\"context\": \"c\", \"multi_turns\": [{\"input\": \"x\"}]}\n", "objects such as"},
             {"kv", with({{"answer", ""}}), "a text that is not empty as \"answer\""},
             {"kv", with({{"answer", 5}}), "a text, or a list of texts, as \"answer\""},
             {"mf", with({{"answer", "seven"}}), "a number as \"answer\""},
             {"mf", with({{"answer", 7}, {"input", "What?"}}), "The … is"},
             {"choice_eng", with(json::object()), "four \"options\" with the \"answer\""},
             {"choice_eng", with({{"options", {"1", "2", "3", "4"}}}), "four \"options\" with the \"answer\""},
             {"summary_with_needles", with({{"task", "scbench_kv"}}), "\"task\""}}) {
        CAPTURE(set, bad);
        const std::string first = file_of_set("scbench_" + set);
        const auto made = scbench_samples("scbench_" + set, first + bad);
        CHECK(made.samples.size() == 8);
        REQUIRE(made.left_out.size() == 1);
        CHECK_THAT(made.left_out[0], StartsWith("scbench_" + set + ".jsonl:3: ") && Contains(expected));
    }
    CHECK_THROWS_WITH(scbench_samples("scbench_kv", "\n"), Contains("found no line with text"));
}

TEST_CASE("SCBench's files and sets are recognized", "[scbench]") {
    CHECK_THROWS_WITH(scbench_samples("", ""), Contains("scbench_kv.jsonl") && Contains("microsoft/SCBench"));
    CHECK_THROWS_WITH(scbench_samples("other", "{}"), Contains("--subset") && Contains("scbench_many_shot"));
    CHECK_THROWS_WITH(scbench_samples("scbench_repoqa_and_kv", "{}"), Contains("parsers"));
    CHECK_THROWS_WITH(scbench_samples("scbench_kv", R"({"context": "c", "question": "q", "answers": ["a"]})"),
                      Contains("not like SCBench: use --task jsonl"));
    const Task& other = task_named("helmet");
    TaskOptions options{policies::ParameterValues(other.parameters), {{"file", file_of_set("scbench_kv")}}};
    options.values.set("file", "nq.jsonl");
    CHECK_THROWS_WITH(other.make_samples({other, options, default_tokenizer(), 8192, other.n_new}),
                      Contains("looks like SCBench") && Contains("--task scbench"));
    CHECK_THAT(task_named("scbench").citation, Contains("Hugging Face dataset") && Contains("Layout: "));
}
