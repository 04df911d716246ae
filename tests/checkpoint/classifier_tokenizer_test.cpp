// Tokens and their offsets compared with `tokenizers`; scripts/golden/token_classifiers.py creates the reference.
#include "engine/tokenizer/classifier/classifier_tokenizer.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/json.h"
#include "tests/checkpoint/files.h"

namespace {

using Catch::Matchers::Contains;
using kvscope::checkpoint::CheckpointError;
using kvscope::checkpoint::ClassifierTokenizer;
using kvscope::checkpoint::testing::read_file;
using kvscope::checkpoint::testing::TemporaryFolder;
using kvscope::checkpoint::testing::write_file;
using nlohmann::json;
namespace fs = std::filesystem;

const fs::path data = fs::path(KVSCOPE_TEST_DATA) / "classifiers";

json read_json(const fs::path& file) { return json::parse(read_file(file)); }

ClassifierTokenizer open_json(const json& description) {
    const TemporaryFolder folder;
    write_file(folder / "tokenizer.json", description.dump());
    return ClassifierTokenizer(folder);
}

std::string message_of(const json& description) {
    try {
        open_json(description);
    } catch (const CheckpointError& error) {
        return error.what();
    }
    FAIL("opened " << description.dump().substr(0, 200));
    return "";
}

}  // namespace

TEST_CASE("a classifier's tokens and their bytes equal those of `tokenizers`", "[classifier]") {
    const json golden = read_json(data / "tokens.json");
    int n_rows = 0;
    for (const auto& [name, one] : golden["cases"].items()) {
        json description = read_json(data / one["classifier"].get<std::string>() / "tokenizer.json");
        if (one.contains("patch")) description.merge_patch(one["patch"]);
        const ClassifierTokenizer tokenizer = open_json(description);
        for (const auto& [text_name, row] : one["rows"].items()) {
            CAPTURE(name, text_name);
            const auto tokens = tokenizer.encode(golden["texts"][text_name].get<std::string>());
            std::vector<int32_t> ids;
            std::vector<std::pair<uint32_t, uint32_t>> offsets;
            for (const auto& token : tokens) {
                ids.push_back(token.id);
                offsets.emplace_back(token.begin, token.end);
            }
            CHECK(ids == row["ids"].get<std::vector<int32_t>>());
            CHECK(offsets == row["offsets"].get<std::vector<std::pair<uint32_t, uint32_t>>>());
            ++n_rows;
        }
    }
    CHECK(n_rows > 300);
}

TEST_CASE("a classifier's surrounding tokens and the starts of its words", "[classifier]") {
    const ClassifierTokenizer bert(data / "bert"), xlm(data / "xlm-roberta");
    CHECK(bert.spelling(bert.before()[0]) == "[CLS]");
    CHECK(bert.spelling(bert.after()[0]) == "[SEP]");
    CHECK(xlm.spelling(xlm.before()[0]) == "<s>");
    CHECK(xlm.spelling(xlm.after()[0]) == "</s>");
    const auto words = [](const ClassifierTokenizer& tokenizer) {
        const std::string text = "vaulted, (x) y.";
        std::string cut;
        uint32_t at = 0;  // SentencePiece's space belongs to the first letter of the word
        for (const auto& token : tokenizer.encode(text)) {
            if (!tokenizer.continues_word(token.id)) cut += '|';
            at = std::max(at, token.begin);
            cut += text.substr(at, token.end - at);
            at = token.end;
        }
        return cut;
    };
    CHECK(words(bert) == "|vaulted|,|(|x|)|y|.");
    CHECK(words(xlm) == "|vaulted|,|(x|)|y|.");
}

TEST_CASE("damaged or unsupported classifier tokenizers are refused by name", "[classifier]") {
    const json bert = read_json(data / "bert/tokenizer.json"), xlm = read_json(data / "xlm-roberta/tokenizer.json");
    const auto with = [](json description, const char* pointer, const json& value) {
        description[json::json_pointer(pointer)] = value;
        return description;
    };
    CHECK_THAT(message_of(with(bert, "/model/type", "BPE")),
               Contains("model: the tokenizer \"BPE\"") && Contains("Unigram"));
    CHECK_THAT(message_of(with(bert, "/model/unk_token", "[HUH]")), Contains("\"[HUH]\" is not in the vocabulary"));
    CHECK_THAT(message_of(with(bert, "/normalizer/type", "Nmt")),
               Contains("normalizer \"Nmt\"") && Contains("Precompiled"));
    CHECK_THAT(message_of(with(bert, "/pre_tokenizer/type", "Split")), Contains("\"Split\" is not supported"));
    CHECK_THAT(message_of(with(bert, "/post_processor", nullptr)), Contains("\"post_processor\" is missing"));
    CHECK_THAT(message_of(with(bert, "/added_tokens/0/special", false)), Contains("added_tokens[0]: an added token"));
    CHECK_THAT(message_of(with(xlm, "/model/unk_id", 100000)),
               Contains("model.unk_id: 100000 is not in the vocabulary"));
    CHECK_THAT(message_of(with(xlm, "/model/vocab/7", json::array({"a"}))),
               Contains("model.vocab[7]: expected a token"));
    CHECK_THAT(message_of(with(xlm, "/model/byte_fallback", true)), Contains("byte_fallback"));
    CHECK_THAT(message_of(with(xlm, "/normalizer/precompiled_charsmap", "!")), Contains("charsmap: is not base64"));
    CHECK_THAT(message_of(with(xlm, "/normalizer/precompiled_charsmap", "/////w==")), Contains("is damaged"));
    const TemporaryFolder empty;
    CHECK_THROWS_WITH(ClassifierTokenizer(empty), Contains("no tokenizer.json") && Contains("save_pretrained"));
    CHECK_THROWS_AS(ClassifierTokenizer(data / "bert").encode("\xff"), std::invalid_argument);
    // A lookup in a character map always ends.
    std::string map = xlm["normalizer"]["precompiled_charsmap"];
    for (size_t i = 0; i < map.size(); i += 7) {
        std::string damaged = map;
        damaged[i] = damaged[i] == 'Q' ? 'x' : 'Q';
        try {
            open_json(with(xlm, "/normalizer/precompiled_charsmap", damaged)).encode("ﬁne … Ａｂｃ e\u0301 ½\u200b.");
        } catch (const CheckpointError&) {
        }
    }
}
