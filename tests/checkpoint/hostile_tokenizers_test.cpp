// Tokenizers made to exhaust memory or to run forever are stopped with a message that names the file. The limits are
// processor time and text length, so the tests do not depend on the machine's speed.
#include <catch2/catch.hpp>
#include <random>

#include "common/json.h"
#include "common/stopped.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/tokenizer/classifier/classifier_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/checkpoint/model_files.h"
#include "tests/sanitized.h"

using namespace kvscope::checkpoint;
using namespace kvscope::checkpoint::testing;
using Catch::Contains;
using nlohmann::json;

namespace {

constexpr const char* limit_of_size = kvscope::tests::sanitized ? "" : "bytes into more than";

json replace(const std::string& what, const std::string& by) {
    return {{"type", "Replace"}, {"pattern", {{"String", what}}}, {"content", by}};
}

/// Replaces each "a" by 16, `times` times.
json growing(int times) {
    json steps = json::array();
    for (int i = 0; i < times; ++i) steps.push_back(replace("a", std::string(16, 'a')));
    return steps;
}

json small_tokenizer() {
    return {{"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"aa", 2}}}, {"merges", {"a a"}}}}};
}

std::string said_on(const json& tokenizer_json, const std::string& text) {
    const TemporaryFolder folder;
    write_file(folder / "tokenizer.json", tokenizer_json.dump());
    return refusal([&] {
        const auto tokenizer = open_tokenizer(folder);
        const auto ids = tokenizer->encode(text, true, true);
        tokenizer->decode(ids);
        for (const int32_t id : ids) tokenizer->shown(id);
    });
}

}  // namespace

TEST_CASE("a tokenizer with growing replacements is stopped") {
    json tokenizer = small_tokenizer();
    SECTION("in one step") { tokenizer["normalizer"] = replace("a", std::string(1 << 20, 'a')); }
    SECTION("in many steps") { tokenizer["normalizer"] = {{"type", "Sequence"}, {"normalizers", growing(12)}}; }
    SECTION("while it is read") {
        tokenizer["normalizer"] = {{"type", "Sequence"}, {"normalizers", growing(12)}};
        tokenizer["added_tokens"] = {{{"id", 3}, {"content", "<aaa>"}, {"normalized", true}}};
    }
    SECTION("by the spelling of bytes") {
        json steps = json::array();
        for (int i = 0; i < 40; ++i) steps.push_back({{"type", "ByteLevel"}, {"use_regex", false}});
        tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
    }
    SECTION("while it decodes") { tokenizer["decoder"] = {{"type", "Sequence"}, {"decoders", growing(12)}}; }
    CHECK_THAT(said_on(tokenizer, std::string(100, 'a') + "\u00e9"),
               Contains("tokenizer.json: the tokenizer was stopped: ") && Contains(limit_of_size) && Contains("bytes"));
}

TEST_CASE("a classifier's tokenizer with growing replacements is stopped") {
    const TemporaryFolder folder;
    json tokenizer = json::parse(read_file(data("classifiers/bert/tokenizer.json")));
    tokenizer["normalizer"] = {{"type", "Sequence"}, {"normalizers", growing(12)}};
    write_file(folder / "tokenizer.json", tokenizer.dump());
    const ClassifierTokenizer opened(folder);
    CHECK_THAT(refusal([&] { opened.encode("aaaa"); }),
               Contains("the tokenizer was stopped: ") && Contains(limit_of_size));
}

TEST_CASE("a pattern that runs forever is stopped") {
    json tokenizer = small_tokenizer();
    // Each match fails only at the engine's own step limit.
    tokenizer["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", {{"Regex", "(?:(?:a|a)*)*c|a"}}}, {"behavior", "Isolated"}};
    const std::string said = said_on(tokenizer, std::string(1000, 'a'));
    CHECK_THAT(said, Contains("tokenizer.json: ") &&
                         (Contains("was stopped") || Contains("regular expression failed on this text")));
}

TEST_CASE("a stop request ends a tokenizer") {
    const TemporaryFolder folder;
    json tokenizer = small_tokenizer();
    json steps = json::array();
    for (int i = 0; i < 4000; ++i) steps.push_back(replace("b", "b"));
    tokenizer["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
    write_file(folder / "tokenizer.json", tokenizer.dump());
    const auto opened = open_tokenizer(folder);
    std::stop_source stop;
    stop.request_stop();
    CHECK_THROWS_AS(opened->encode(std::string(1 << 20, 'a'), false, false, stop.get_token()), kvscope::Stopped);
}

TEST_CASE("texts as long as books are tokenized") {
    std::mt19937 random(1);
    std::string text;
    while (text.size() < (2u << 20)) text += random() % 5 == 0 ? ' ' : static_cast<char>('a' + random() % 26);
    for (const char* model : {"models/llama3-gqa-sharded", "models/llama2-mha"}) {
        const auto tokenizer = open_tokenizer(data(model));
        const auto ids = tokenizer->encode(text, false, false);
        CHECK_THAT(tokenizer->decode(ids), Contains(text.substr(100, 1000)));
    }
}

TEST_CASE("deeply nested JSON is refused with a message") {
    const TemporaryFolder folder;
    fs::copy(data("models/smollm2-tied"), folder, fs::copy_options::recursive);
    const auto open_all = [&] {
        return refusal([&] {
            open_checkpoint(folder);
            open_tokenizer(folder);
        });
    };
    REQUIRE(open_all().empty());
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    for (const char* name : {"config.json", "tokenizer_config.json", "generation_config.json", "tokenizer.json"}) {
        INFO(name);
        const std::string whole = read_file(folder / name);
        const std::string begun = whole.substr(0, whole.rfind('}'));
        write_file(folder / name, begun + R"(, "rope_theta": 1e99999})");
        CHECK_THAT(open_all(), Contains(std::string(name) + ": is not supported JSON: a number in it is larger"));
        write_file(folder / name, begun + R"(, "rope_theta": )" + deep + "}");
        CHECK_THAT(open_all(), Contains(std::string(name) + ": is nested more than 256 levels deep"));
        write_file(folder / name, whole);
    }
    REQUIRE(open_all().empty());
    const std::string header = R"({"x": {"dtype": "F32", "shape": [1], "data_offsets": [)" + deep + ", 4]}}";
    std::string size(8, '\0');
    const uint64_t n = header.size();
    std::memcpy(size.data(), &n, 8);
    write_file(folder / "model.safetensors", size + header + "1234");
    CHECK_THAT(open_all(), Contains("model.safetensors: the header is nested more than 256 levels deep"));
}
