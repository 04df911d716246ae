#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <set>

#include "common/file_text.h"
#include "common/json.h"
#include "common/sha256.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/api/task.h"
#include "engine/tasks/ruler/numpy_random.h"
#include "engine/tasks/ruler/python_random.h"
#include "engine/tasks/ruler/sentence_splitter.h"

using namespace kvscope;
using namespace kvscope::engine;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

const std::filesystem::path folder = std::filesystem::path(KVSCOPE_TEST_DATA) / "ruler";

/// Numbers that RULER's scripts, CPython and NumPy compute (scripts/golden/ruler.py).
const json& golden() {
    static const json read = json::parse(file_text(folder / "prompts.json"));
    return read;
}

const checkpoint::Tokenizer& tokenizer() {
    static const auto opened = checkpoint::open_tokenizer(folder / "tokenizer");
    return *opened;
}

std::string english_words() {
    std::string text = "{";
    for (int i = 0; i < 30000; ++i) text += fmt::format("{}\"{}\": \"word{}\"", i > 0 ? ", " : "", i, i);
    return text + "}";
}

const std::map<std::string, std::string>& files() {
    static const auto read = [] {
        std::map<std::string, std::string> texts;
        for (const std::string& asset : task_named("ruler").assets)
            texts[asset] = file_text(std::filesystem::path(KVSCOPE_SOURCE) / "assets" / asset);
        for (const std::string name : {"essays.json", "punkt.txt", "squad.json", "hotpotqa.json"})
            texts[name.substr(0, name.find('.'))] = file_text(folder / name);
        texts["words"] = english_words();
        return texts;
    }();
    return read;
}

using Changes = std::vector<std::pair<std::string, std::string>>;

/// @param replaced contents of files, by option; an empty text removes the file
std::vector<TaskSample> samples_of(const Changes& changes, const Changes& replaced = {}, int64_t context = 400000,
                                   const checkpoint::Tokenizer& with = tokenizer()) {
    const Task& task = task_named("ruler");
    TaskOptions options{policies::ParameterValues(task.parameters), files()};
    for (const std::string name : {"essays", "punkt", "words", "squad", "hotpotqa"})
        options.values.set(name, name + ".file");
    for (const auto& [option, text] : replaced)
        text.empty() ? void(options.files.erase(option)) : void(options.files[option] = text);
    for (const auto& [parameter, text] : changes) options.values.set(parameter, text);
    return task.make_samples({task, options, with, context, task.n_new});
}

std::string text_of(const TaskSample& sample) { return sample.context + sample.separator + sample.question; }

Changes one_subset(const std::string& subset, const std::string& length, const std::string& n_samples = "1") {
    return {{"subsets", subset}, {"lengths", length}, {"samples", n_samples}};
}

}  // namespace

TEST_CASE("RULER's prompts are those of its own scripts", "[ruler]") {
    std::set<std::string> subsets;
    for (const json& one : golden()["prompts"]) {
        const auto subset = one["subset"].get<std::string>();
        const auto length = one["length"].get<int64_t>();
        const auto seed = one["seed"].get<uint64_t>();
        CAPTURE(subset, length, seed);
        subsets.insert(subset);
        const json& wanted = one["samples"];
        auto changes = one_subset(subset, std::to_string(length), std::to_string(wanted.size()));
        changes.emplace_back("seed", std::to_string(seed));
        const auto samples = samples_of(changes);
        REQUIRE(samples.size() == wanted.size());
        for (size_t i = 0; i < samples.size(); ++i) {
            CAPTURE(i);
            const std::string text = text_of(samples[i]);
            if (wanted[i].contains("begin")) {  // at least 900 bytes, or the whole text
                CHECK(text.substr(0, 900) == wanted[i]["begin"].get<std::string>().substr(0, 900));
                CHECK_THAT(text, Catch::Matchers::EndsWith(wanted[i]["end"].get<std::string>()));
            }
            CHECK(sha256_of(text) == wanted[i]["sha256"].get<std::string>());
            CHECK(samples[i].answers == wanted[i]["outputs"].get<std::vector<std::string>>());
            const auto n_tokens = static_cast<int64_t>(tokenizer().encode(text, false, true).size());
            CHECK(n_tokens + samples[i].n_new == wanted[i]["length"].get<int64_t>());
        }
    }
    CHECK(subsets.size() == 13);
}

TEST_CASE("the generators return the numbers of CPython and NumPy", "[ruler]") {
    for (const json& wanted : golden()["python"]) {
        const auto seed = wanted["seed"].get<uint64_t>();
        CAPTURE(seed);
        ruler::PythonRandom random(seed);
        for (const double number : wanted["random"]) CHECK(random.random() == number);
        const size_t bounds[] = {1, 2, 7, 6'000'000};
        for (size_t i = 0; i < 4; ++i) CHECK(random.below(bounds[i]) == wanted["below"][i].get<size_t>());
        for (const int64_t number : wanted["randint"]) CHECK(random.randint(1000000, 9999999) == number);
        CHECK(random.uuid4() == wanted["uuid"].get<std::string>());
        CHECK(random.letters("abcdefg", 20) == wanted["letters"].get<std::string>());
        for (const json& sample : wanted["sample"])
            CHECK(random.sample(sample["n"], sample["k"]) == sample["chosen"].get<std::vector<size_t>>());
        std::vector<int> numbers;
        for (int i = 0; i < 20; ++i) numbers.push_back(i);
        random.shuffle(numbers);
        CHECK(numbers == wanted["shuffled"].get<std::vector<int>>());
        CHECK_FALSE(random.sample(3, 4));
    }
    for (const json& wanted : golden()["numpy"]) {
        ruler::NumpyRandom random(wanted["seed"].get<uint32_t>());
        for (const json& drawn : wanted["randint"])
            CHECK(random.randint(drawn[0], drawn[1]) == drawn[2].get<int64_t>());
    }
}

TEST_CASE("the spans of a RULER prompt contain its answers", "[ruler]") {
    for (const std::string subset : {"niah_single_1", "niah_multikey_3", "niah_multivalue", "niah_multiquery", "vt"}) {
        CAPTURE(subset);
        const auto sample = samples_of(one_subset(subset, "3000"))[0];
        REQUIRE(sample.spans.size() == sample.answers.size());
        for (size_t i = 0; i < sample.spans.size(); ++i) {
            const auto [begin, end] = sample.spans[i];
            const std::string text = sample.context.substr(begin, end - begin);
            CHECK_THAT(text, Contains(sample.answers[i]));
            CHECK_THAT(text, Catch::Matchers::StartsWith(subset == "vt" ? "VAR " : "One of the special magic"));
        }
    }
    const auto asked = samples_of(one_subset("qa_1", "3000"))[0];
    REQUIRE(!asked.spans.empty());
    const auto [begin, end] = asked.spans[0];
    CHECK(asked.context.substr(begin, end - begin) == asked.answers[0]);
}

TEST_CASE("more RULER samples append samples, and each subset has its scorer and number of answer tokens", "[ruler]") {
    Changes changes{{"subsets", "vt,fwe,cwe,qa_1"}, {"lengths", "2000,1500"}, {"samples", "2"}};
    const auto few = samples_of(changes);
    changes.back().second = "4";
    const auto many = samples_of(changes);
    REQUIRE(few.size() == 16);
    REQUIRE(many.size() == 32);
    for (size_t i = 0; i < few.size(); ++i) {
        CHECK(few[i].number == static_cast<int>(i));
        CHECK(few[i].id == many[i].id);
        CHECK(text_of(few[i]) == text_of(many[i]));
    }
    CHECK(few[5].id == "fwe-1500-0");
    CHECK(few[5].subset == "fwe");
    CHECK(few[5].length == 1500);
    CHECK(few[0].n_new == 30);
    CHECK(few[2].n_new == 120);
    CHECK(few[0].scorer->metric == "string_match_all");
    CHECK(few[3].scorer->metric == "string_match_part");
    // Another list of subsets and lengths gives the same samples.
    CHECK(text_of(samples_of(one_subset("fwe", "1500", "2"))[1]) == text_of(few[13]));
}

TEST_CASE("RULER refuses options and files that give no prompts", "[ruler]") {
    const auto refused = [](const Changes& changes, const Changes& replaced, const std::string& message,
                            int64_t context = 400000) {
        CAPTURE(message);
        CHECK_THROWS_WITH(samples_of(changes, replaced, context), Contains(message));
    };
    refused(one_subset("niah_singel_1", "1000"), {}, "unknown subset 'niah_singel_1'. Did you mean niah_single_1");
    refused(one_subset("vt,vt", "1000"), {}, "vt is given twice");
    refused(one_subset("vt", "1000,1000"), {}, "1000 is given twice");
    refused(one_subset("vt", "1000"), {},
            "--lengths: expected at most 999, the model's context for prompt and answer, found 1000", 999);
    refused({{"seed", "4294967296"}}, {}, "--seed 4294967296: expected at most 4294967295");
    refused(one_subset("niah_single_1", "150"), {}, "tokens for the smallest prompt of RULER's niah_single_1");
    refused(one_subset("fwe", "249"), {}, "--lengths: expected at least 250 tokens for RULER's fwe, found 249");
    refused(one_subset("qa_2", "300"), {}, "smallest prompt of RULER's qa_2");
    refused(one_subset("niah_single_2", "1000"), {{"essays", ""}}, "PaulGrahamEssays.json");
    refused(one_subset("niah_single_2", "1000"), {{"punkt", ""}}, "https://github.com/nltk/nltk_data");
    refused(one_subset("qa_1", "1000"), {{"squad", ""}}, "name it with --squad");
    refused(one_subset("qa_2", "1000"), {{"hotpotqa", ""}}, "name it with --hotpotqa");
    refused(one_subset("cwe", "300000"), {{"words", ""}}, "name it with --words");
    refused(one_subset("niah_single_2", "1000"), {{"essays", "[]"}}, "essays.file: expected the JSON object");
    refused(one_subset("niah_single_2", "1000"), {{"punkt", "a\n"}}, "punkt.file:1: expected a line such as");
    refused(one_subset("niah_single_2", "1000"), {{"punkt", "ortho_context.tab:a\tb"}}, "a number after the tab");
    refused(one_subset("niah_single_2", "1000"), {{"punkt", "abbrev_types.txt:dr"}}, "\"sent_starters.txt:\"");
    refused(one_subset("qa_1", "1000"), {{"squad", "no"}}, "squad.file: expected SQuAD 2.0's JSON");
    refused(one_subset("qa_1", "1000"), {{"squad", "{\"data\": [1]}"}}, "found another structure");
    refused(one_subset("qa_1", "1000", "99"), {}, "squad.file: expected at least 99 questions for --samples 99, found");
    refused(one_subset("qa_2", "1000"), {{"hotpotqa", "{}"}}, "hotpotqa.file: expected HotpotQA's JSON");
    refused(one_subset("cwe", "1500"), {{"words", "{\"a\": 1}"}}, "words.file: expected a JSON object");
    CHECK(samples_of(one_subset("cwe", "1500"), {{"words", ""}}).size() == 1);
}

TEST_CASE("RULER's vt is refused if its example exceeds 500 tokens", "[ruler]") {
    const auto bytes =
        checkpoint::open_tokenizer(std::filesystem::path(KVSCOPE_TEST_DATA) / "models/llama3-gqa-sharded");
    CHECK_THROWS_WITH(
        samples_of(one_subset("vt", "4000"), {}, 400000, *bytes),
        Contains("example of at most 500 tokens") && Contains("the example has at least ") && !Contains("--lengths"));
}

TEST_CASE("RULER's scorers compare as its evaluate.py", "[ruler]") {
    const auto all = [](std::string_view prediction, const std::vector<std::string>& answers) {
        return string_match_all().score(prediction, answers);
    };
    CHECK(all("One, TWO", {"one", "Two"}) == 1);
    CHECK(all("one", {"one", "two", "three", "four"}) == 0.25);
    CHECK(all("\u00c9MILE", {"\u00e9mile"}) == 1);
    CHECK(all("a\tb", {"a\nb"}) == 1);
    CHECK(all("a\tb", {"a\tb"}) == 0);
    CHECK(all(" b \n", {"b "}) == 0);
    CHECK(string_match_part().score("the second", std::vector<std::string>{"first", "second"}) == 1);
    CHECK(string_match_part().score("the third", std::vector<std::string>{"first", "second"}) == 0);
}
