#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <sstream>

#include "common/file_text.h"
#include "common/json.h"
#include "common/sha256.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/task.h"
#include "engine/tasks/niah/rouge1.h"

using namespace kvscope;
using namespace kvscope::engine;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// Samples of an independent implementation, and depths of NeedleInAHaystack (scripts/golden/niah.py).
const json& golden() {
    static const json read = json::parse(file_text(std::filesystem::path(KVSCOPE_TEST_DATA) / "niah" / "samples.json"));
    return read;
}

const checkpoint::Tokenizer& tokenizer() {
    static const auto opened =
        checkpoint::open_tokenizer(std::filesystem::path(KVSCOPE_TEST_DATA) / "ruler" / "tokenizer");
    return *opened;
}

TaskOptions default_options() {
    const Task& task = task_named("niah");
    TaskOptions options{policies::ParameterValues(task.parameters)};
    for (const std::string& asset : task.assets)
        options.files[asset] = file_text(std::filesystem::path(KVSCOPE_SOURCE) / "assets" / asset);
    return options;
}

std::vector<TaskSample> samples_of(const TaskOptions& options, int64_t n_new = 24) {
    const Task& task = task_named("niah");
    return task.make_samples({task, options, tokenizer(), 4000, n_new});
}

std::vector<TaskSample> samples_with(const std::vector<std::pair<std::string, std::string>>& changes,
                                     int64_t n_new = 24) {
    TaskOptions options = default_options();
    options.values.set("lengths", "300");
    for (const auto& [name, value] : changes) options.values.set(name, value);
    return samples_of(options, n_new);
}

/// Returns a number or text, or the elements of a list separated by commas.
std::string option_text(const json& value) {
    if (value.is_string()) return value;
    if (!value.is_array()) return value.dump();
    std::string text;
    for (const json& one : value) text += (text.empty() ? "" : ",") + one.dump();
    return text;
}

TaskOptions options_of(const json& changes) {
    TaskOptions options = default_options();
    options.values.set("lengths", "300");
    options.values.set("depths", "0.1,0.5,0.9");
    options.values.set("samples", "1");
    for (const auto& [name, value] : changes.items()) {
        options.values.set(name, name == "haystack" ? "story.txt" : option_text(value));
        if (name == "haystack") options.files["haystack"] = value;
    }
    return options;
}

std::vector<double> depths_of(const std::vector<TaskSample>& samples) {
    std::vector<double> depths;
    for (const TaskSample& sample : samples) depths.push_back(sample.depth);
    return depths;
}

}  // namespace

TEST_CASE("niah: samples are those of an independent implementation", "[niah]") {
    for (const json& one : golden()["samples"]) {
        CAPTURE(one["options"].dump());
        const auto samples = samples_of(options_of(one["options"]));
        REQUIRE(samples.size() == one["samples"].size());
        for (size_t i = 0; i < samples.size(); ++i) {
            const TaskSample& sample = samples[i];
            const json& expected = one["samples"][i];
            CHECK(sample.id == expected["id"]);
            CHECK(sample.number == expected["number"]);
            CHECK(sample.question == expected["question"]);
            CHECK(sample.answers == expected["answers"].get<std::vector<std::string>>());
            CHECK(sample.spans == expected["spans"].get<std::vector<std::pair<size_t, size_t>>>());
            CHECK(sample.n_new == expected["n_new"]);
            if (expected.contains("context")) CHECK(sample.context == expected["context"]);
            CHECK(sha256_of(sample.context) == expected["sha256"]);
        }
    }
}

TEST_CASE("niah: depths at intervals are those of NeedleInAHaystack", "[niah]") {
    for (const json& one : golden()["depths"]) {
        CAPTURE(one.dump());
        const auto samples = samples_with({{"samples", "1"},
                                           {"lengths", "100"},
                                           {"depth_min", one["min"].dump()},
                                           {"depth_max", one["max"].dump()},
                                           {"depth_intervals", one["intervals"].dump()},
                                           {"depth_spacing", one["spacing"]}});
        CHECK(depths_of(samples) == one["depths"].get<std::vector<double>>());
    }
}

TEST_CASE("niah: lengths and depths can be ranges", "[niah]") {
    const auto samples = samples_with({{"samples", "1"}, {"lengths", "100-400+100"}, {"depths", "0-1+0.25"}});
    REQUIRE(samples.size() == 4 * 5);
    CHECK(samples[19].id == "niah-400-1-0");
    CHECK(samples[6].depth == 0.25);
    CHECK(samples[6].length == 200);
}

TEST_CASE("niah: a folder of texts is read in the order of the names", "[niah]") {
    TaskOptions options = options_of({{"haystack_order", "text"}, {"lengths", 100}, {"depths", 1}});
    options.values.set("haystack", "essays");
    options.files["haystack/b.txt"] = "It was second.";
    options.files["haystack/a.txt"] = "A ship left. Without a last full stop";
    const std::string context = samples_of(options)[0].context;
    CHECK_THAT(context, Catch::StartsWith("A ship left. Without a last full stop It was second. A ship left."));
    options.files.erase("haystack/a.txt");
    options.files.erase("haystack/b.txt");
    CHECK_THROWS_WITH(samples_of(options), Contains("essays: the haystack is empty"));
}

TEST_CASE("niah: rouge1 is that of the package rouge_score", "[niah]") {
    for (const json& one : golden()["rouge1"]) {
        CAPTURE(one.dump());
        const std::string prediction = one["prediction"], reference = one["reference"];
        CHECK(niah::rouge1(prediction, reference) == Approx(one["score"].get<double>()).margin(1e-12));
    }
    const auto samples = samples_with({{"score_as", "kvpress"}, {"n_values", "2"}});
    REQUIRE(samples[0].scorer);
    CHECK(samples[0].scorer->scored_as == "niah as in kvpress");
    const auto [begin, end] = samples[0].spans[1];
    const std::string needle = samples[0].context.substr(begin, end - begin);
    CHECK(samples[0].scorer->score(needle, samples[0].answers) == Approx(2.0 / 3));  // one of two equally long needles
    CHECK_FALSE(samples_with({})[0].scorer);
}

TEST_CASE("niah: stems are those of NLTK", "[niah]") {
    const json& stems = golden()["stems"];
    for (const auto& [word, stem] : stems["words"].items()) CHECK(niah::stem_of(word) == stem.get<std::string>());
    std::set<std::string> words;
    for (const std::string list : {"noun", "adjective", "verb"}) {
        std::istringstream lines(
            file_text(std::filesystem::path(KVSCOPE_SOURCE) / "assets" / "wonderwords" / (list + "list.txt")));
        for (std::string word; std::getline(lines, word);) {
            word.resize(word.find_last_not_of(" \r\t") + 1);
            if (std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; })) words.insert(word);
        }
    }
    std::string all;
    for (const std::string& word : words)
        for (const std::string suffix : stems["suffixes"])
            all += word + suffix + " " + niah::stem_of(word + suffix) + "\n";
    CHECK(sha256_of(all) == stems["sha256"]);
}

TEST_CASE("niah: the user's number of new tokens replaces that of the sample", "[niah]") {
    CHECK(samples_with({{"values", "uuids"}})[0].n_new == 128);
    CHECK(samples_with({{"values", "uuids"}}, 30)[0].n_new == 30);
    CHECK_NOTHROW(samples_with({{"lengths", "3970"}, {"samples", "1"}, {"depths", "0"}}));
    CHECK_THROWS_WITH(samples_with({{"lengths", "3970"}, {"values", "uuids"}}), Contains("of which 128 are for"));
}

TEST_CASE("niah: options that contradict each other are refused", "[niah]") {
    const auto refused = [](const std::vector<std::pair<std::string, std::string>>& changes, const char* message) {
        CAPTURE(message);
        CHECK_THROWS_WITH(samples_with(changes), Contains(message));
    };
    refused({{"depths", "0.5"}, {"depth_intervals", "3"}}, "--depths and --depth-intervals");
    refused({{"depth_spacing", "sigmoid"}}, "--depth-spacing needs --depth-intervals");
    refused({{"n_keys", "25"}}, "expected at most 24 items, found 25: use --keys words");
    refused({{"n_keys", "24"}, {"filler", "needles"}}, "at most 23 items");
    refused({{"needle", "reasoning"}, {"n_values", "2"}}, "--needle: reasoning has one item");
    refused({{"filler", "needles"}, {"haystack", "a.txt"}}, "--filler: needles replace the text of --haystack");
    refused({{"needle_text", "The {value}."}}, "give both --needle-text and --needle-question");
    refused({{"needle_text", "The value."}, {"needle_question", "Which?"}}, "a text with {value}");
    refused({{"needle_text", "The {value}."}, {"needle_question", "Which?"}, {"n_keys", "2"}},
            "several keys need {key}");
    refused({{"needle_answer", "tea"}}, "--needle-answer: give --needle-text and --needle-question, too");
    refused({{"needle_text", "It is {value}."}, {"needle_question", "?"}, {"needle_answer", "tea"}, {"n_values", "2"}},
            "--needle-answer: is the only value");
    refused({{"lengths", "5"}}, "--lengths 5: the needle has");
}
