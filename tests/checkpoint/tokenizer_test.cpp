// Token ids and decoded texts compared with references from scripts/golden/tokenizer_ids.py.
#include "engine/tokenizer/tokenizer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "common/json.h"
#include "common/utf8.h"
#include "tests/checkpoint/files.h"
#include "tests/sanitized.h"

namespace {

using kvscope::checkpoint::CheckpointError;
using kvscope::checkpoint::open_tokenizer;
using kvscope::checkpoint::Tokenizer;
using kvscope::checkpoint::testing::read_file;
using kvscope::checkpoint::testing::TemporaryFolder;
using kvscope::checkpoint::testing::write_file;
using nlohmann::json;
namespace fs = std::filesystem;

const fs::path data = fs::path(KVSCOPE_TEST_DATA) / "checkpoint/tokenizers";

json read_json(const fs::path& file) { return json::parse(read_file(file)); }

std::unique_ptr<Tokenizer> open_json(const json& description) {
    const TemporaryFolder folder;
    write_file(folder / "tokenizer.json", description.dump());
    return open_tokenizer(folder);
}

std::string message_of(const std::string& tokenizer_json) {
    const TemporaryFolder folder;
    write_file(folder / "tokenizer.json", tokenizer_json);
    try {
        open_tokenizer(folder);
    } catch (const CheckpointError& error) {
        return error.what();
    }
    FAIL("opened " << tokenizer_json.substr(0, 200));
    return "";
}

/// Compares every row of a case. Rows without `decoded` decode to the text itself.
void check_rows(const Tokenizer& tokenizer, const json& texts, const json& rows, bool add_special, bool parse_special,
                bool decoding) {
    REQUIRE(!rows.empty());
    for (const auto& [name, row] : rows.items()) {
        INFO("text: " << name);
        const auto text = texts.at(name).get<std::string>();
        const auto ids = row.at("ids").get<std::vector<int32_t>>();
        CHECK(tokenizer.encode(text, add_special, parse_special) == ids);
        if (decoding) {
            const auto decoded = row.value("decoded", text);
            CHECK(tokenizer.decode(ids) == decoded);
            CHECK(tokenizer.decode(ids, true) == row.value("decoded_plain", decoded));
        }
    }
}

/// The parts of a GGUF file's metadata that a vocabulary needs, read without the code under test.
class GgufMetadata {
 public:
    explicit GgufMetadata(const fs::path& file) : bytes_(read_file(file)) {
        number<uint64_t>();  // tensors
        for (auto left = number<uint64_t>(); left > 0; --left) {
            const std::string key = text();
            value(key, number<uint32_t>());
        }
    }
    std::map<std::string, std::vector<std::string>> texts;
    std::map<std::string, std::vector<int32_t>> integers;

 private:
    template <typename T>
    T number() {
        T value;
        REQUIRE(at_ + sizeof value <= bytes_.size());
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::string text() {
        const auto length = number<uint64_t>();
        at_ += length;
        return bytes_.substr(at_ - length, length);
    }
    void value(const std::string& key, uint32_t type) {
        static constexpr size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
        if (type == 8) {
            texts[key].push_back(text());
        } else if (type == 9) {
            const auto element = number<uint32_t>();
            for (auto left = number<uint64_t>(); left > 0; --left) value(key, element);
        } else if (type == 5) {
            integers[key].push_back(number<int32_t>());
        } else {
            at_ += sizes[type];
        }
    }
    std::string bytes_;
    size_t at_ = 8;
};

/// Returns a tokenizer.json for a GGUF file's vocabulary, made as by scripts/golden/tokenizer_ids.py.
json tokenizer_json_of(const fs::path& gguf) {
    const GgufMetadata metadata(gguf);
    const auto& tokens = metadata.texts.at("tokenizer.ggml.tokens");
    const auto& kinds = metadata.integers.at("tokenizer.ggml.token_type");
    json vocabulary = json::object(), added = json::array();
    for (size_t id = 0; id < tokens.size(); ++id) {
        vocabulary[tokens[id]] = id;
        if (kinds[id] == 3) {
            added.push_back({{"id", id}, {"content", tokens[id]}, {"special", true}, {"normalized", false}});
        }
    }
    return {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", metadata.texts.at("tokenizer.ggml.merges")}}},
            {"added_tokens", added}};
}

/// Returns positions where a question may start: every character except marks and joining letters.
std::vector<size_t> places_of_a_question(const std::string& text) {
    std::vector<size_t> places;
    for (size_t at = 0; at < text.size();) {
        const auto step = kvscope::decode_utf8_character(text, at);
        const char32_t c = step.code;
        const bool joins = (c >= 0x300 && c <= 0x36F) || (c >= 0x1160 && c <= 0x11FF);
        if (!joins) places.push_back(at);
        at += step.bytes;
    }
    return places;
}

fs::path llama_vocabulary(const std::string& name) {
    return fs::path(KVSCOPE_LLAMA_SOURCE) / "models" / ("ggml-vocab-" + name + ".gguf");
}

}  // namespace

TEST_CASE("tokenizer.json: ids and texts equal those of the library tokenizers") {
    const json golden = read_json(data / "cases.json");
    for (const auto& [name, one] : golden.at("cases").items()) {
        INFO("case: " << name);
        json description = read_json(data / (one.at("family").get<std::string>() + ".json"));
        if (one.contains("patch")) description.merge_patch(one.at("patch"));
        check_rows(*open_json(description), golden.at("texts"), one.at("rows"), one.at("add_special"),
                   one.at("parse_special"), !one.contains("ids_only"));
    }
}

TEST_CASE("tokenizer.json: the full vocabularies of GPT-2, Llama 3 and Qwen2") {
    const json golden = read_json(data / "real.json");
    for (const auto& [name, one] : golden.at("cases").items()) {
        INFO("vocabulary: " << name);
        json description = tokenizer_json_of(llama_vocabulary(name));
        description.merge_patch(one.at("patch"));
        check_rows(*open_json(description), golden.at("texts"), one.at("rows"), false, true, true);
    }
}

TEST_CASE("GGUF: the default model's ids equal llama.cpp's") {
    const json golden = read_json(data / "default.json");
    const auto tokenizer = open_tokenizer(KVSCOPE_DEFAULT_MODEL);
    CHECK(tokenizer->vocab_size() == 49152);
    CHECK(tokenizer->bos() == 1);
    CHECK(tokenizer->eos() == 2);
    CHECK(tokenizer->id_of("<|im_end|>") == 2);
    CHECK(tokenizer->description() == "byte-level BPE, pre-tokenizer smollm (GGUF, llama.cpp)");
    for (const auto& [name, one] : golden.at("cases").items()) {
        INFO(name);
        for (const auto& [text_name, row] : one.at("rows").items()) {
            INFO("text: " << text_name);
            const auto text = golden.at("texts").at(text_name).get<std::string>();
            const auto ids = row.at("ids").get<std::vector<int32_t>>();
            CHECK(tokenizer->encode(text, one.at("add_special"), one.at("parse_special")) == ids);
            CHECK(tokenizer->decode(ids) == text);
            std::string pieces;
            for (const int32_t id : ids) pieces += tokenizer->piece(id);
            CHECK(pieces == text);
        }
    }
}

TEST_CASE("GGUF: ids of other families' vocabularies equal those stored by llama.cpp") {
    for (const char* name : {"llama-spm", "llama-bpe", "qwen2", "gpt-2", "phi-3"}) {
        INFO("vocabulary: " << name);
        const fs::path file = llama_vocabulary(name);
        const auto tokenizer = open_tokenizer(file);
        std::string inputs = read_file(file.string() + ".inp");
        std::istringstream outputs(read_file(file.string() + ".out"));
        static constexpr std::string_view separator = "\n__ggml_vocab_test__\n";
        std::string line;
        size_t count = 0;
        while (std::getline(outputs, line)) {
            const size_t end = inputs.find(separator);
            REQUIRE(end != std::string::npos);
            const std::string text = inputs.substr(0, end);
            inputs.erase(0, end + separator.size());
            std::istringstream numbers(line);
            const std::vector<int32_t> ids(std::istream_iterator<int32_t>(numbers), {});
            INFO("text: " << text);
            CHECK(tokenizer->encode(text, false, false) == ids);
            ++count;
        }
        CHECK(count > 40);
    }
}

TEST_CASE("tokenizer.json: ends of tokens equal those of the library tokenizers") {
    const json golden = read_json(data / "ends.json");
    for (const auto& [name, one] : golden.at("cases").items()) {
        json description = read_json(data / (one.at("family").get<std::string>() + ".json"));
        description.merge_patch(one.at("patch"));
        description["post_processor"] = nullptr;
        const auto tokenizer = open_json(description);
        for (const auto& [text_name, row] : one.at("rows").items()) {
            INFO("case: " << name << ", text: " << text_name);
            const auto text = golden.at("texts").at(text_name).get<std::string>();
            const auto encoding = tokenizer->encode_with_ends(text, true, true);
            REQUIRE(encoding.ids == row.at("ids").get<std::vector<int32_t>>());
            CHECK(encoding.ids == tokenizer->encode(text, true, true));
            const kvscope::checkpoint::Encoding expected{encoding.ids, row.at("ends").get<std::vector<uint32_t>>()};
            for (const size_t at : places_of_a_question(text)) {
                INFO("at " << at);
                CHECK(encoding.first_token_from(at) == expected.first_token_from(at));
            }
        }
    }
}

TEST_CASE("a token that extends into the question belongs to the question") {
    json description = read_json(data / "llama2.json");
    auto& model = description["model"];
    const auto id = static_cast<int>(model["vocab"].size());
    model["vocab"]["\nW"] = id;
    model["merges"].insert(model["merges"].begin(), model["merges"][0].is_array() ? json{"\n", "W"} : json("\n W"));
    model["vocab"]["\n"] = id + 1;
    description["added_tokens"] = json::array();
    const auto tokenizer = open_json(description);
    const std::string context = "A text.\n\n", question = "Who?";
    const auto encoding = tokenizer->encode_with_ends(context + question, false, false);
    const size_t first = encoding.first_token_from(context.size());
    REQUIRE(first < encoding.ids.size());
    CHECK(encoding.ids[first] == id);
    CHECK(encoding.ends[first] == context.size() + 1);
}

TEST_CASE("GGUF: tokens end at the end of the text that they spell") {
    for (const char* name : {"llama-spm", "llama-bpe", "qwen2", "gpt-2", "phi-3"}) {
        const fs::path file = llama_vocabulary(name);
        const auto tokenizer = open_tokenizer(file);
        std::string inputs = read_file(file.string() + ".inp");
        static constexpr std::string_view separator = "\n__ggml_vocab_test__\n";
        for (size_t end = 0; (end = inputs.find(separator)) != std::string::npos;
             inputs.erase(0, end + separator.size())) {
            const std::string text = inputs.substr(0, end);
            INFO("vocabulary: " << name << ", text: " << text);
            for (const bool add_special : {false, true}) {
                const auto encoding = tokenizer->encode_with_ends(text, add_special, false);
                REQUIRE(encoding.ends.size() == encoding.ids.size());
                for (size_t i = 0; i < encoding.ids.size(); ++i) {
                    // If several tokens spell one character, each ends where the character ends.
                    if (encoding.ends[i] == 0 ||
                        (i + 1 < encoding.ids.size() && encoding.ends[i + 1] == encoding.ends[i]))
                        continue;
                    const std::span<const int32_t> until(encoding.ids.data(), i + 1);
                    const std::string decoded = tokenizer->decode(until, add_special);
                    if (decoded.empty()) continue;  // the leading space, which belongs to the first character
                    CHECK(decoded == text.substr(0, encoding.ends[i]));
                }
                if (!text.empty()) CHECK(*std::max_element(encoding.ends.begin(), encoding.ends.end()) == text.size());
            }
        }
    }
}

TEST_CASE("GGUF: control tokens and SentencePiece's added spaces have positions") {
    const auto tokenizer = open_tokenizer(llama_vocabulary("llama-spm"));
    const std::string text = "<s> A ▁b.</s>Who?";
    const auto encoding = tokenizer->encode_with_ends(text, true, true);
    CHECK(encoding.ends[0] == 0);  // BOS
    CHECK(encoding.ends[1] == 3);
    const size_t who = encoding.first_token_from(text.find("Who"));
    CHECK(tokenizer->piece(encoding.ids[who]) == " Who");
    CHECK(tokenizer->piece(encoding.ids[who - 1]) == "</s>");
    CHECK(tokenizer->piece(encoding.ids[encoding.first_token_from(text.find("b."))]) == " b");
    const std::string prompt = "The report.\n\nWho?";
    const auto whole = tokenizer->encode_with_ends(prompt, true, true);
    CHECK(tokenizer->piece(whole.ids[whole.first_token_from(prompt.find("Who"))]) == "Who");
}

TEST_CASE("tokenizer.json: letters composed across graphemes are one part of the text") {
    json description = read_json(fs::path(KVSCOPE_TEST_DATA) / "models/smollm2-tied/tokenizer.json");
    description["normalizer"] = {{"type", "NFKC"}};
    const auto tokenizer = open_json(description);
    const std::string text = "abc ㄱㅏ def";
    const auto encoding = tokenizer->encode_with_ends(text, false, true);
    CHECK(encoding.ids == std::vector<int32_t>{100, 101, 102, 35, 237, 179, 131, 35, 103, 104, 105});
    CHECK(encoding.ends == std::vector<uint32_t>{1, 2, 3, 4, 10, 10, 10, 11, 12, 13, 14});

    // Jamo of all forms (compatibility, half width, parenthesized, circled), and syllables without a final consonant.
    std::vector<std::string> letters = {"가", "e"};
    const std::pair<char32_t, char32_t> ranges[] = {
        {0x3131, 0x318E}, {0x3200, 0x321E}, {0x3260, 0x327E}, {0xFFA1, 0xFFDC}};
    for (const auto& [first, last] : ranges)
        for (char32_t c = first; c <= last; ++c) kvscope::append_utf8(letters.emplace_back(), c);
    for (const std::string& first : letters) {
        for (const std::string& second : letters) {
            const std::string pair = first + second + "ㄳ";
            const auto of_pair = tokenizer->encode_with_ends(pair, false, true);
            REQUIRE(of_pair.ids == tokenizer->encode(pair, false, true));
            REQUIRE(std::is_sorted(of_pair.ends.begin(), of_pair.ends.end()));
            REQUIRE(of_pair.ends.back() == pair.size());
            REQUIRE(of_pair.ends.front() <= first.size() + second.size() + (first == "e" ? 0 : 3));
        }
    }
}

TEST_CASE("GGUF: a byte without a token does not move other tokens") {
    const auto tokenizer = open_tokenizer(KVSCOPE_DEFAULT_MODEL);
    const std::string question = "Who jumps?";
    // If a character starts with F1 or F2, tokens of its other bytes represent it.
    for (const std::string left_out :
         {"", "\x04", "\x06", "\x13", "\x14", "\x16", "\x1D", "\x04\x06", "\U00040000", "\U00080000"}) {
        CAPTURE(left_out);
        const std::string context = "The fox jumps" + left_out + " over" + left_out + ". ", text = context + question;
        for (const std::string& whole : {text, text + left_out, left_out + text}) {
            const auto encoding = tokenizer->encode_with_ends(whole, false, true);
            CHECK(std::is_sorted(encoding.ends.begin(), encoding.ends.end()));
            CHECK(encoding.ends.back() >= whole.size() - left_out.size());
            const size_t who = encoding.first_token_from(whole.find("Who"));
            CHECK_THAT(tokenizer->piece(encoding.ids.at(who)), Catch::EndsWith("Who"));
            CHECK(tokenizer->piece(encoding.ids.at(encoding.first_token_from(whole.find("over")))) == " over");
        }
    }
    CHECK(tokenizer->encode_with_ends("\x04", false, true).ends.empty());
    CHECK(tokenizer->encode("\U00040000", false, true).size() == 3);
}

TEST_CASE("Tokens for display are always UTF-8") {
    const auto tokenizer = open_tokenizer(KVSCOPE_DEFAULT_MODEL);
    const auto ids = tokenizer->encode("🦙", false, false);
    std::string shown;
    for (const int32_t id : ids) shown += tokenizer->shown(id);
    CHECK(shown == "⟨F0⟩⟨9F⟩⟨A6⟩⟨99⟩");
    CHECK(tokenizer->shown(tokenizer->encode(" the", false, false).at(0)) == " the");
    CHECK(tokenizer->shown(tokenizer->encode("\n", false, false).at(0)) == "\n");
    CHECK(tokenizer->shown(tokenizer->encode(std::string(1, '\0'), false, false).at(0)) == "⟨00⟩");
    CHECK(tokenizer->shown(1) == "<|im_start|>");
    for (int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
        REQUIRE_NOTHROW(json(tokenizer->shown(id)).dump());
    }
}

TEST_CASE("Byte fallback pieces are the bytes themselves") {
    const auto tokenizer = open_json(read_json(data / "llama2.json"));
    CHECK(tokenizer->piece(tokenizer->id_of("<0xE2>").value()) == "\xE2");
    CHECK(tokenizer->shown(tokenizer->id_of("<0xE2>").value()) == "⟨E2⟩");
    CHECK(tokenizer->piece(tokenizer->id_of("▁the").value()) == " the");
    CHECK(tokenizer->is_special(1));
    CHECK(tokenizer->description() == "BPE with byte fallback (tokenizer.json)");
}

TEST_CASE("Text that is not UTF-8 is refused with the offset") {
    const auto gguf = open_tokenizer(KVSCOPE_DEFAULT_MODEL);
    const auto hugging_face = open_json(read_json(data / "gpt2.json"));
    for (const Tokenizer* tokenizer : {gguf.get(), hugging_face.get()}) {
        for (const auto& [text, offset] : std::map<std::string, std::string>{{"abc\xFF", "byte 3 (0xFF)"},
                                                                             {"\xC0\x80", "byte 0 (0xC0)"},
                                                                             {"é\xED\xA0\x80", "byte 2 (0xED)"},
                                                                             {"x\xF0\x9F\xA6", "byte 1 (0xF0)"},
                                                                             {"\xF4\x90\x80\x80", "byte 0 (0xF4)"}}) {
            CHECK_THROWS_WITH(tokenizer->encode(text, true, true), Catch::Contains(offset));
            CHECK_THROWS_AS(tokenizer->encode(text, true, true), std::invalid_argument);
        }
        CHECK_THROWS_WITH(tokenizer->decode(std::vector<int32_t>{-1}),
                          Catch::Contains("token id -1 is not in the vocabulary"));
        CHECK_THROWS_AS(tokenizer->piece(static_cast<int32_t>(tokenizer->vocab_size())), std::invalid_argument);
    }
}

TEST_CASE("A Hugging Face directory determines the end of generation") {
    const TemporaryFolder folder;
    write_file(folder / "tokenizer.json", read_file(data / "llama3.json"));
    CHECK(open_tokenizer(folder)->end_of_generation().empty());

    write_file(folder / "tokenizer_config.json",
               R"({"bos_token": "<|begin_of_text|>", "eos_token": {"content": "<|eot_id|>"}})");
    const auto with_config = open_tokenizer(folder / "tokenizer.json");
    CHECK(with_config->bos() == with_config->id_of("<|begin_of_text|>"));
    CHECK(with_config->eos() == with_config->id_of("<|eot_id|>"));
    CHECK(std::vector<int32_t>{*with_config->eos()} ==
          std::vector<int32_t>(with_config->end_of_generation().begin(), with_config->end_of_generation().end()));

    write_file(folder / "config.json", R"({"eos_token_id": 5})");
    const auto from_config = open_tokenizer(folder);
    CHECK(std::vector<int32_t>(from_config->end_of_generation().begin(), from_config->end_of_generation().end()) ==
          std::vector<int32_t>{5});
    write_file(folder / "generation_config.json", R"({"eos_token_id": [9, 7]})");
    write_file(folder / "model.safetensors", "");
    const auto from_generation = open_tokenizer(folder / "model.safetensors");
    CHECK(std::vector<int32_t>(from_generation->end_of_generation().begin(),
                               from_generation->end_of_generation().end()) == std::vector<int32_t>{7, 9});

    write_file(folder / "generation_config.json", R"({"eos_token_id": 70000})");
    CHECK_THROWS_WITH(open_tokenizer(folder), Catch::Contains("generation_config.json: eos_token_id: token id 70000"));
    write_file(folder / "generation_config.json", R"({"eos_token_id": "end"})");
    CHECK_THROWS_WITH(open_tokenizer(folder), Catch::Contains("eos_token_id: expected an integer, found a string"));
}

TEST_CASE("Damaged and unsupported tokenizer.json files are refused with the position") {
    const std::string good = read_file(data / "llama2.json");
    const json base = json::parse(good);
    auto patched = [&](const char* patch) {
        json description = base;
        description.merge_patch(json::parse(patch));
        return message_of(description.dump());
    };
    using Catch::Contains;

    CHECK_THAT(message_of(""), Contains("tokenizer.json: is truncated"));
    CHECK_THAT(message_of(good.substr(0, good.size() / 2)), Contains("is truncated"));
    CHECK_THAT(message_of("\xFF\xFE\x01 not JSON"), Contains("is not valid JSON: error at byte"));
    CHECK_THAT(message_of("[1, 2]"), Contains("expected a JSON object"));
    CHECK_THAT(message_of("{}"), Contains("\"model\" is missing"));
    CHECK_THAT(message_of(R"({"model": 3})"), Contains("model: expected an object, found a number"));
    CHECK_THAT(patched(R"({"model": {"type": "Unigram"}})"), Contains("\"Unigram\" are not supported"));
    CHECK_THAT(patched(R"({"model": {"type": "WordPiece"}})"), Contains("\"WordPiece\" are not supported"));
    CHECK_THAT(patched(R"({"model": {"vocab": null}})"), Contains("\"vocab\" is missing"));
    CHECK_THAT(patched(R"({"model": {"vocab": [1]}})"), Contains("model.vocab: expected an object"));
    CHECK_THAT(patched(R"({"model": {"vocab": {"zz": "7"}}})"), Contains("model.vocab[\"zz\"]: expected an integer"));
    CHECK_THAT(patched(R"({"model": {"vocab": {"zz": -7}}})"), Contains("token id -7 is out of range"));
    CHECK_THAT(patched(R"({"model": {"vocab": {"zz": 99999999999999999999}}})"), Contains("expected an integer"));
    CHECK_THAT(patched(R"({"model": {"vocab": {"zz": 2147483648}}})"), Contains("out of range"));
    CHECK_THAT(patched(R"({"model": {"vocab": {"zz": 0}}})"), Contains("token id 0 is given twice"));
    CHECK_THAT(patched(R"({"model": {"merges": ["a b", "a"]}})"), Contains("model.merges[1]"));
    CHECK_THAT(patched(R"({"model": {"merges": [["a", "b", "c"]]}})"), Contains("expected a merge of 2 parts"));
    CHECK_THAT(patched(R"({"model": {"merges": [["a", 4]]}})"), Contains("model.merges[0][1]: expected a string"));
    CHECK_THAT(patched(R"({"model": {"merges": [["a", "nowhere"]]}})"),
               Contains("merge 0 (\"a\" with \"nowhere\") names \"nowhere\", which is not in the vocabulary"));
    CHECK_THAT(patched(R"({"model": {"unk_token": "[UNK]"}})"), Contains("the unknown token \"[UNK]\" is not in"));
    CHECK_THAT(patched(R"({"model": {"dropout": 0.1}})"), Contains("dropout"));
    CHECK_THAT(patched(R"({"model": {"byte_fallback": "yes"}})"),
               Contains("model.byte_fallback: expected true or false"));
    CHECK_THAT(patched(R"({"added_tokens": {"a": 1}})"), Contains("added_tokens: expected an array"));
    CHECK_THAT(patched(R"({"added_tokens": [{"content": "x"}]})"), Contains("added_tokens[0]: \"id\" is missing"));
    CHECK_THAT(patched(R"({"added_tokens": [{"id": 2, "content": "<new>"}]})"),
               Contains("the added token \"<new>\" has the id 2, but the vocabulary uses that id for \"</s>\""));
    CHECK_THAT(patched(R"({"added_tokens": [{"id": 5, "content": "</s>"}]})"), Contains("the vocabulary gives it 2"));
    CHECK_THAT(patched(R"({"added_tokens": [{"id": 1099511627776, "content": "x"}]})"), Contains("out of range"));
    CHECK_THAT(patched(R"({"normalizer": {"type": "Precompiled"}})"),
               Contains("normalizer: the normalizer \"Precompiled\" is not supported"));
    CHECK_THAT(patched(R"({"normalizer": {"type": "Prepend"}})"), Contains("normalizer: \"prepend\" is missing"));
    CHECK_THAT(patched(R"({"pre_tokenizer": {"type": "BertPreTokenizer"}})"),
               Contains("\"BertPreTokenizer\" is not supported"));
    CHECK_THAT(patched(R"({"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "(a"}}})"),
               Contains("pre_tokenizer.pattern: the regular expression (a is not valid"));
    CHECK_THAT(
        patched(R"({"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "[a&&b]"}}})"),
        Contains("an intersection of character classes"));
    CHECK_THAT(patched(R"({"pre_tokenizer": {"type": "Split", "behavior": "Sideways", "pattern": {"String": "a"}}})"),
               Contains("\"Sideways\" is not Removed"));
    CHECK_THAT(patched(R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "ab"}})"),
               Contains("a single character"));
    std::string nested = R"({"type": "NFC"})";
    for (int i = 0; i < 100; ++i) nested = R"({"type": "Sequence", "normalizers": [)" + nested + "]}";
    CHECK_THAT(
        message_of(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "normalizer": )" + nested + "}"),
        Contains("is nested more than 60 levels deep"));
    CHECK_THAT(patched(R"({"decoder": {"type": "CTC"}})"), Contains("the decoder \"CTC\" is not supported"));
    CHECK_THAT(patched(R"({"post_processor": {"type": "BertProcessing"}})"),
               Contains("\"BertProcessing\" is not supported"));
    CHECK_THAT(patched(R"({"post_processor": {"special_tokens": {"<s>": {"ids": [123456]}}}})"),
               Contains("post_processor: token id 123456 is not in the vocabulary"));
    CHECK_THAT(patched(R"({"post_processor": {"special_tokens": null}})"), Contains("\"special_tokens\" is missing"));

    const TemporaryFolder folder;
    CHECK_THROWS_WITH(open_tokenizer(folder), Contains("has no tokenizer.json"));
    write_file(folder / "tokenizer.model", "x");
    CHECK_THROWS_WITH(open_tokenizer(folder), Contains("save_pretrained"));
    CHECK_THROWS_WITH(open_tokenizer(folder / "missing.gguf"), Contains("does not exist"));
}

TEST_CASE("A truncated or changed tokenizer.json opens or is refused, and never crashes") {
    const std::string good = read_file(data / "qwen2.json");
    const TemporaryFolder folder;
    size_t refused = 0;
    for (size_t i = 0; i < 200; ++i) {
        std::string bad = good;
        const size_t at = (i * 7919 + 13) % bad.size();
        if (i % 2 == 0) {
            bad.resize(at);
        } else {
            bad[at] = static_cast<char>(bad[at] ^ (1 << (i % 8)));
        }
        write_file(folder / "tokenizer.json", bad);
        try {
            open_tokenizer(folder)->encode("The <|im_start|> text 123", true, true);
        } catch (const CheckpointError& error) {
            ++refused;
            REQUIRE_NOTHROW(json(error.what()).dump());
        }
    }
    CHECK(refused > 100);
}

TEST_CASE("Damaged GGUF vocabularies are refused, and nothing is printed to the terminal") {
    const std::string good = read_file(llama_vocabulary("llama-spm"));
    const TemporaryFolder folder;
    const fs::path file = folder / "model.gguf";
    auto message = [&](const std::string& bytes) -> std::string {
        write_file(folder / "model.gguf", bytes);
        try {
            open_tokenizer(file)->encode("text", true, true);
        } catch (const CheckpointError& error) {
            return error.what();
        }
        return "";
    };
    using Catch::Contains;

    CHECK_THAT(message(""), Contains("is not a readable GGUF file"));
    CHECK_THAT(message("GGUF"), Contains("is not a readable GGUF file"));
    CHECK_THAT(message("<html>"), Contains("is not a readable GGUF file"));
    CHECK_THAT(message(good.substr(0, good.size() / 2)), Contains("is not a readable GGUF file"));
    auto renamed = [&](const std::string& from, const std::string& to) {
        REQUIRE(from.size() == to.size());
        std::string bytes = good;
        const size_t at = bytes.find(from);
        REQUIRE(at != std::string::npos);
        return bytes.replace(at, from.size(), to);
    };
    CHECK_THAT(message(renamed("tokenizer.ggml.model", "tokenizer.ggml.modem")), Contains("has no tokenizer"));
    CHECK_THAT(message(renamed("tokenizer.ggml.tokens", "tokenizer.ggml.t0kens")), Contains("vocabulary is empty"));
    CHECK_THAT(message(renamed("<0x41>", "<0x42>")), Contains("are the same, \"<0x42>\""));
    CHECK_THAT(message(renamed("<0x01>", "<0xZZ>")), Contains("no token for the byte <0x01>"));
    for (size_t i = 0; i < 60; ++i) {
        std::string bad = good;
        const size_t at = (i * i * 31 + i * 17) % (i % 2 == 0 ? 1500 : bad.size());
        bad[at] = static_cast<char>(bad[at] ^ (1 << (i % 8)));
        REQUIRE_NOTHROW(json(message(bad)).dump());
    }
}

TEST_CASE("Long words and long runs of spaces are encoded quickly") {
    const auto llama2 = open_json(read_json(data / "llama2.json"));
    const auto qwen2 = open_json(read_json(data / "qwen2.json"));
    const auto gguf = open_tokenizer(KVSCOPE_DEFAULT_MODEL);
    // A quadratic algorithm would take minutes.
    constexpr size_t length = kvscope::tests::sanitized ? 40'000 : 400'000;
    for (const std::string& text : {std::string(length, 'a'), std::string(length, ' '), std::string(length, '\n'), [] {
                                        std::string words;
                                        for (size_t i = 0; i < length / 5; ++i) words += "the fox ";
                                        return words;
                                    }()}) {
        for (const Tokenizer* tokenizer : {llama2.get(), qwen2.get(), gguf.get()}) {
            CHECK(tokenizer->decode(tokenizer->encode(text, false, true)) == text);
        }
    }
}
