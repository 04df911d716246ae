// Contents of a model's files compared with transformers; see scripts/golden/model_files.py.
#include "tests/checkpoint/model_files.h"

#include <catch2/catch.hpp>

#include "engine/checkpoint/chat_template.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/hf_config.h"
#include "engine/checkpoint/known_fields.h"
#include "engine/tokenizer/tokenizer.h"

using namespace kvscope::checkpoint;
using namespace kvscope::checkpoint::testing;
using Catch::Matchers::Contains;
using nlohmann::ordered_json;

namespace {

ordered_json golden() { return ordered_json::parse(read_file(data("checkpoint/model_files.json"))); }

void write_files(const fs::path& folder, const ordered_json& files) {
    for (const auto& [name, content] : files.items()) {
        fs::create_directories((folder / name).parent_path());
        write_file(folder / name, content.is_string() ? content.get<std::string>() : content.dump());
    }
}

std::string base_tokenizer() { return read_file(data("checkpoint/tokenizers/qwen2.json")); }

std::string tokenizer_refusal(const ordered_json& files) {
    const TemporaryFolder folder;
    write_file(folder / "tokenizer.json", base_tokenizer());
    write_files(folder, files);
    return refusal([&] { open_tokenizer(folder); });
}

}  // namespace

TEST_CASE("added tokens of every file and field equal those in transformers, with their flags") {
    const ordered_json all = golden();
    REQUIRE(all.at("tokens").size() == 20);
    for (const auto& [name, expected] : all.at("tokens").items()) {
        INFO(name);
        const TemporaryFolder folder;
        write_file(folder / "tokenizer.json", base_tokenizer());
        write_files(folder, expected["files"]);
        const auto tokenizer = open_tokenizer(folder);
        CHECK(tokenizer->vocab_size() == expected["n"]);
        for (size_t i = 0; i < all["texts"].size(); ++i) {
            const auto text = all["texts"][i].get<std::string>();
            INFO(text);
            CHECK(tokenizer->encode(text, false, true) == expected["ids"][i].get<std::vector<int32_t>>());
        }
    }
}

TEST_CASE("added tokens that contradict the vocabulary are refused with their file") {
    CHECK_THAT(
        tokenizer_refusal({{"added_tokens.json", {{"<|user|>", 5}}}}),
        Contains("added_tokens.json: the added token \"<|user|>\" has the id 5, but the vocabulary uses that id for"));
    CHECK_THAT(
        tokenizer_refusal({{"tokenizer_config.json", {{"added_tokens_decoder", {{"9", {{"content", "ing"}}}}}}}}),
        Contains("tokenizer_config.json: the added token \"ing\" has the id 9, but the vocabulary gives it"));
    CHECK_THAT(tokenizer_refusal({{"tokenizer_config.json", {{"added_tokens_decoder", {{"x", {{"content", "a"}}}}}}}}),
               Contains("added_tokens_decoder[\"x\"]: expected a token id"));
    CHECK_THAT(tokenizer_refusal({{"tokenizer_config.json", {{"extra_special_tokens", {1}}}}}),
               Contains("tokenizer_config.json: extra_special_tokens[0]: expected a token"));
    CHECK_THAT(tokenizer_refusal({{"tokenizer_config.json", {{"split_special_tokens", true}}}}),
               Contains("tokenizer_config.json: split_special_tokens is true"));
}

TEST_CASE("chat templates of every file equal those in transformers") {
    const ordered_json all = golden();
    for (const auto& [name, expected] : all.at("templates").items()) {
        INFO(name);
        const TemporaryFolder folder;
        write_files(folder, expected["files"]);
        const auto chat_template = ChatTemplate::of_model(folder);
        REQUIRE(chat_template);
        const std::vector<Message> messages = {{"user", "Hello"}};
        if (expected.contains("text")) {
            CHECK(chat_template->problem().empty());
            CHECK(chat_template->render(messages, false) == expected["text"]);
        } else {
            const std::string error = refusal([&] { chat_template->render(messages, false); });
            CHECK_THAT(error, Contains("has chat templates named rag") && Contains("none named \"default\"") &&
                                  Contains("chat_template.jinja") && Contains("--no-template"));
            CHECK_THAT(error, Contains(name == "other files alone" ? "additional_chat_templates" : "tokenizer_config"));
        }
    }
    // transformers reads it only for processors. If a model has nothing else, it is the model's template.
    const TemporaryFolder folder;
    write_file(folder / "chat_template.json", R"({"chat_template": "five"})");
    CHECK(ChatTemplate::of_model(folder)->source() == "five");
    write_file(folder / "tokenizer_config.json", R"({"chat_template": "four"})");
    CHECK(ChatTemplate::of_model(folder)->source() == "four");
}

TEST_CASE("windows and rotary parameters equal those in transformers") {
    const ordered_json all = golden();
    for (const auto& [name, expected] : all.at("configs").items()) {
        INFO(name);
        const TemporaryFolder folder;
        write_file(folder / "config.json", expected["config"].get<std::string>());
        const ModelConfig config = read_hf_config(folder);
        CHECK(config.sliding_window == expected["windows"].get<std::vector<int64_t>>());
        CHECK(config.rope_theta == expected["rope_theta"]);
        const bool is_linear = expected["rope_type"] == "linear";
        CHECK((config.rope_scaling.kind == RopeScaling::Kind::linear) == is_linear);
        CHECK(config.rope_scaling.factor == expected["factor"]);
    }
}

TEST_CASE("unsupported fields are refused by name unless they are neutral") {
    const ordered_json llama = {{"model_type", "llama"},   {"vocab_size", 1000},     {"hidden_size", 64},
                                {"intermediate_size", 96}, {"num_hidden_layers", 2}, {"num_attention_heads", 8}};
    const auto refused = [&](const std::string& field, const ordered_json& value) {
        const TemporaryFolder folder;
        ordered_json config = llama;
        config[ordered_json::json_pointer(field)] = value;
        write_file(folder / "config.json", config.dump());
        return refusal([&] { read_hf_config(folder); });
    };
    for (const auto& [field, changed, neutral] : std::vector<std::array<ordered_json, 3>>{
             {"/attention_multiplier", 0.5, nullptr},
             {"/final_logit_softcapping", 30.0, nullptr},
             {"/attn_logit_softcapping", 50, 0},
             {"/logits_scaling", 8.0, 1.0},
             {"/residual_multiplier", 0.22, 1},
             {"/embedding_multiplier", 12, nullptr},
             {"/rope_interleaved", true, false},
             {"/is_causal", false, true},
             {"/is_causal", false, nullptr},
             {"/use_bidirectional_attention", true, false},
             {"/num_kv_shared_layers", 1, 0},
             {"/transformers_weights", "other.safetensors", nullptr},
             {"/sliding_window", 512, nullptr},
             {"/sliding_window", 512, 2048},  // the whole context
             {"/no_rope_layers", {1, 0}, {1, 1}},
             {"/pruned_heads", {{"0", {1}}}, ordered_json::object()},
             {"/partial_rotary_factor", 0.5, 1.0},
             {"/rope_parameters", {{"llama_4_scaling_beta", 0.1}}, {{"llama_4_scaling_beta", nullptr}}},
             {"/rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}, {{"rope_type", "default"}}},
         }) {
        const auto name = field.get<std::string>();
        INFO(name);
        CHECK(refused(name, neutral).empty());
        const std::string leaf = changed.is_object() && changed.size() == 1 && name == "/rope_parameters"
                                     ? "rope_parameters.llama_4_scaling_beta"
                                     : name.substr(1);
        CHECK_THAT(refused(name, changed), Contains("config.json: ") && (Contains(leaf) || Contains("\"dynamic\"")));
    }
    CHECK_THAT(refused("/layer_types", {"full_attention", "sliding_attention"}), Contains("layer_types"));
}

TEST_CASE("a field that the model's family reads is not refused") {
    const nlohmann::json config = {{"attention_chunk_size", 4}};
    const JsonFields fields(config, "config.json");
    Family family{.name = "new", .title = "New", .hf_classes = {}, .gguf_architecture = "new"};
    CHECK_THAT(refusal([&] { refuse_unsupported_fields(fields, family); }), Contains("attention_chunk_size is 4"));
    family.keys.sliding_window.hf = "attention_chunk_size";
    CHECK(refusal([&] { refuse_unsupported_fields(fields, family); }).empty());
}

TEST_CASE("unknown fields are listed by file") {
    const TemporaryFolder folder;
    fs::copy(data("models/smollm2-tied"), folder, fs::copy_options::recursive);
    CHECK(unknown_fields(folder).empty());
    for (const char* model : {"llama3-gqa-sharded", "smollm2-tied"})
        CHECK(unknown_fields(data("models") / model).empty());

    for (const char* family : {"gpt2", "llama2", "llama3", "qwen2", "smollm2"}) {
        const TemporaryFolder of_family;
        write_file(of_family / "tokenizer.json",
                   read_file(data("checkpoint/tokenizers") / (family + std::string(".json"))));
        CHECK(unknown_fields(of_family).empty());
    }

    const auto change = [&](const char* file, const ordered_json& more) {
        ordered_json whole = ordered_json::parse(read_file(folder / file));
        whole.merge_patch(more);
        write_file(folder / file, whole.dump());
    };
    change("config.json", {{"new_field", 1}, {"rope_parameters", {{"wobble", 2}, {"rope_theta", 1e4}}}});
    change("tokenizer.json", {{"added", 1}, {"model", {{"sampling", 0.1}}}, {"decoder", {{"sparkle", 1}}}});
    change("tokenizer_config.json", {{"surprise", true}, {"fresh_token", "<|im_end|>"}});
    const auto found = unknown_fields(folder);
    REQUIRE(found.size() == 3);
    CHECK(found[0].file.filename() == "config.json");
    CHECK(found[0].names == std::vector<std::string>{"new_field", "rope_parameters.wobble"});
    CHECK(found[1].names == std::vector<std::string>{"added", "model.sampling", "decoder.sparkle"});
    CHECK(found[2].names == std::vector<std::string>{"surprise"});
    CHECK(unknown_fields(folder / "model.safetensors").size() == 3);
}

TEST_CASE("NaN and Infinity are numbers, as in Python") {
    const TemporaryFolder folder;
    const fs::path file = folder / "x.json";
    write_file(file, "{\"a\": NaN, \"b\": [Infinity, -Infinity], \"c\": \"NaN\", \"d\": \"\\\"Infinity\"}");
    const auto json = JsonFields::parse_file(file);
    const JsonFields fields(json, file);
    CHECK(std::isnan(*fields.number("a")));
    CHECK(json["b"][0].get<double>() == std::numeric_limits<double>::infinity());
    CHECK(json["b"][1].get<double>() == -std::numeric_limits<double>::infinity());
    CHECK(fields.text("c") == "NaN");
    CHECK(fields.text("d") == "\"Infinity");
    CHECK_THAT(refusal([&] { fields.integer("a"); }), Contains("x.json: a is NaN, expected a whole number"));
    for (const char* wrong : {"{\"a\": nan}", "{\"a\": -NaN}", "{\"a\": Infinit}", "{\"a\": NaN"}) {
        write_file(file, wrong);
        CHECK_THAT(refusal([&] { JsonFields::parse_file(file); }), Contains("not valid JSON"));
    }
}
