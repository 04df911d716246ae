#include "engine/checkpoint/hf_config.h"

#include <catch2/catch.hpp>

#include "tests/checkpoint/model_files.h"

using namespace kvscope::checkpoint;
using namespace kvscope::checkpoint::testing;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

json llama() {
    return {{"model_type", "llama"},    {"architectures", {"LlamaForCausalLM"}},
            {"vocab_size", 1000},       {"hidden_size", 64},
            {"intermediate_size", 96},  {"num_hidden_layers", 4},
            {"num_attention_heads", 8}, {"eos_token_id", 2}};
}

json qwen(const char* type, const char* architecture) {
    json config = llama();
    config["model_type"] = type;
    config["architectures"] = {architecture};
    config["num_key_value_heads"] = 2;
    return config;
}

json with(json config, const json& more) {
    config.update(more);
    return config;
}

ModelConfig parse(const json& config, const json& generation = nullptr, const json& tokenizer_config = nullptr,
                  const json& tokenizer = nullptr) {
    const TemporaryFolder folder;
    write_file(folder / "config.json", config.dump());
    if (!generation.is_null()) write_file(folder / "generation_config.json", generation.dump());
    if (!tokenizer_config.is_null()) write_file(folder / "tokenizer_config.json", tokenizer_config.dump());
    if (!tokenizer.is_null()) write_file(folder / "tokenizer.json", tokenizer.dump());
    return read_hf_config(folder);
}

std::string refused(const json& config) {
    return refusal([&] { parse(config); });
}

}  // namespace

TEST_CASE("missing fields of config.json have the defaults of transformers") {
    const auto c = parse(llama());
    CHECK(c.n_kv_heads == 8);
    CHECK(c.head_dim == 8);
    CHECK(c.context_length == 2048);
    CHECK(c.rms_norm_eps == 1e-6f);
    CHECK(c.rope_theta == 10000.0);
    CHECK_FALSE(c.tied_embeddings);
    CHECK_FALSE(c.qkv_bias);
    CHECK(c.bos_id == 1);

    CHECK(parse(with(llama(), {{"head_dim", nullptr}, {"num_key_value_heads", nullptr}})).head_dim == 8);
    CHECK(parse(with(llama(), {{"head_dim", 32}})).head_dim == 32);

    auto mistral = with(llama(), {{"model_type", "mistral"}, {"architectures", {"MistralForCausalLM"}}});
    CHECK(parse(mistral).n_kv_heads == 8);
    CHECK(parse(mistral).sliding_window == std::vector<int64_t>(4, 4096));
    CHECK(parse(with(mistral, {{"sliding_window", nullptr}})).sliding_window == std::vector<int64_t>(4, 0));
    CHECK(parse(with(mistral, {{"sliding_window", 5}})).sliding_window == std::vector<int64_t>(4, 5));

    const auto qwen3 = qwen("qwen3", "Qwen3ForCausalLM");
    CHECK(parse(qwen3).head_dim == 128);
    CHECK(parse(with(qwen3, {{"head_dim", nullptr}})).head_dim == 8);
    CHECK(parse(with(qwen3, {{"attention_bias", true}})).output_bias);
    CHECK(parse(qwen("qwen2", "Qwen2ForCausalLM")).head_dim == 8);
    CHECK_FALSE(parse(with(qwen("qwen2", "Qwen2ForCausalLM"), {{"attention_bias", true}})).output_bias);
}

TEST_CASE("rotary parameters in the formats of transformers 4 and 5") {
    CHECK(parse(with(llama(), {{"rope_theta", 5e5}})).rope_theta == 5e5);
    CHECK(parse(with(llama(), {{"rope_parameters", {{"rope_theta", 1e6}, {"rope_type", "default"}}}})).rope_theta ==
          1e6);
    const json scaling = {{"factor", 8.0},
                          {"low_freq_factor", 1.0},
                          {"high_freq_factor", 4.0},
                          {"original_max_position_embeddings", 8192}};
    for (const char* key : {"type", "rope_type"}) {
        const auto c = parse(with(llama(), {{"rope_theta", 5e5}, {"rope_scaling", with(scaling, {{key, "llama3"}})}}));
        CHECK(c.rope_theta == 5e5);
        CHECK(c.rope_scaling.kind == RopeScaling::Kind::llama3);
        CHECK(c.rope_scaling.factor == 8.0);
        CHECK(c.rope_scaling.original_context == 8192);
    }
    const auto linear = parse(with(llama(), {{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}));
    CHECK(linear.rope_scaling.kind == RopeScaling::Kind::linear);
    CHECK(linear.inverse_frequencies()[0] == 0.5f);

    const json yarn = {{"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}}}, {"max_position_embeddings", 40960}};
    CHECK(parse(with(llama(), yarn)).rope_scaling.original_context == 40960);
    CHECK(parse(with(llama(), yarn)).rope_attention_factor() == Approx(1.1386294));

    CHECK_THAT(refused(with(llama(), {{"rope_scaling", {{"type", "dynamic"}, {"factor", 2}}}})),
               Contains("\"dynamic\"") && Contains("linear, llama3 and yarn"));
    CHECK_THAT(refused(with(llama(), {{"rope_scaling", {{"type", "linear"}}}})), Contains("without a factor"));
    CHECK_THAT(refused(with(llama(), {{"rope_scaling", "linear"}})), Contains("rope_scaling is \"linear\""));
    CHECK_THAT(refused(with(llama(), {{"rope_theta", -1}})), Contains("rope_theta"));
    CHECK_THAT(refused(with(llama(), {{"partial_rotary_factor", 0.5}})), Contains("partial_rotary_factor"));
}

TEST_CASE("sliding windows of Qwen models") {
    const auto base = qwen("qwen2", "Qwen2ForCausalLM");
    const auto windows = [&](const json& more) { return parse(with(base, more)).sliding_window; };
    using Windows = std::vector<int64_t>;
    CHECK(windows({{"sliding_window", 9}}) == Windows{0, 0, 0, 0});
    CHECK(windows({{"sliding_window", 9}, {"use_sliding_window", false}}) == Windows{0, 0, 0, 0});
    CHECK(windows({{"sliding_window", 9}, {"use_sliding_window", true}}) == Windows{0, 0, 0, 0});
    CHECK(windows({{"sliding_window", 9}, {"use_sliding_window", true}, {"max_window_layers", 3}}) ==
          Windows{0, 0, 0, 9});
    const json types = {"full_attention", "sliding_attention", "full_attention", "sliding_attention"};
    CHECK(windows({{"sliding_window", 9}, {"use_sliding_window", true}, {"layer_types", types}}) ==
          Windows{0, 9, 0, 9});
    CHECK(windows({{"sliding_window", nullptr}, {"use_sliding_window", false}, {"layer_types", types}}) ==
          Windows{0, 0, 0, 0});
    CHECK_THAT(refused(with(base, {{"layer_types", {"full_attention"}}})), Contains("layer_types has 1 entries"));
    CHECK_THAT(refused(with(base, {{"layer_types", {"full_attention", "linear_attention", "x", "x"}}})),
               Contains("linear_attention"));
}

TEST_CASE("end-of-text tokens and the token before a text") {
    CHECK(parse(llama()).eos_ids == std::vector<int32_t>{2});
    CHECK(parse(with(llama(), {{"eos_token_id", {9, 3, 9}}})).eos_ids == std::vector<int32_t>{3, 9});
    CHECK(parse(with(llama(), {{"eos_token_id", nullptr}})).eos_ids.empty());
    CHECK(parse(llama(), {{"eos_token_id", {7, 5}}}).eos_ids == std::vector<int32_t>{5, 7});
    CHECK(parse(llama(), {{"eos_token_id", nullptr}}).eos_ids == std::vector<int32_t>{2});
    CHECK(parse(llama(), {{"temperature", 1}}).eos_ids == std::vector<int32_t>{2});
    CHECK_THAT(refused(with(llama(), {{"eos_token_id", 1000}})), Contains("end-of-text") && Contains("999"));
    CHECK_THAT(refused(with(llama(), {{"eos_token_id", "</s>"}})), Contains("eos_token_id"));

    CHECK(parse(llama(), nullptr, {{"add_bos_token", true}}).add_bos);
    CHECK_FALSE(parse(llama(), nullptr, {{"add_bos_token", false}}).add_bos);
    const json bos_template = {{"type", "TemplateProcessing"},
                               {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}}};
    CHECK(parse(llama(), nullptr, nullptr, {{"model", {{"vocab", {{"a", 1}}}}}, {"post_processor", bos_template}})
              .add_bos);
    const json sequence = {{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}, bos_template}}};
    CHECK(parse(llama(), nullptr, nullptr, {{"post_processor", sequence}}).add_bos);
    CHECK_FALSE(parse(llama(), nullptr, nullptr, {{"post_processor", {{"type", "ByteLevel"}}}}).add_bos);
    CHECK_FALSE(parse(llama(), nullptr, {{"add_bos_token", false}}, {{"post_processor", bos_template}}).add_bos);
}

TEST_CASE("unsupported models are refused with the list of supported ones") {
    const char* supported = "supported are Llama 2 and 3.x, Mistral, Qwen2 and 2.5, Qwen3, SmolLM2";
    const std::vector<std::array<const char*, 3>> others = {
        {"mixtral", "MixtralForCausalLM", "mixture of experts"},
        {"qwen2_moe", "Qwen2MoeForCausalLM", "mixture of experts"},
        {"qwen3_moe", "Qwen3MoeForCausalLM", "mixture of experts"},
        {"qwen3_next", "Qwen3NextForCausalLM", "linear attention"},
        {"qwen2_vl", "Qwen2VLForConditionalGeneration", "vision"},
        {"mllama", "MllamaForConditionalGeneration", "vision"},
        {"gpt2", "GPT2LMHeadModel", "gpt2"},
        {"llama", "LlamaForSequenceClassification", "classifier"},
        {"qwen2", "Qwen2ForRewardModel", "reward"},
    };
    for (const auto& [type, architecture, reason] : others) {
        CHECK_THAT(refused(with(llama(), {{"model_type", type}, {"architectures", {architecture}}})),
                   Contains(supported) && Contains(reason) && Contains("config.json"));
    }
    CHECK_THAT(refused(with(llama(), {{"model_type", nullptr}})), Contains("no model_type"));
    CHECK_THAT(refused(with(llama(), {{"num_local_experts", 8}})), Contains("mixture of experts"));
    CHECK_THAT(refused(with(llama(), {{"vision_config", {{"depth", 3}}}})), Contains("vision_config"));
    CHECK_THAT(refused(with(llama(), {{"quantization_config", {{"quant_method", "gptq"}}}})),
               Contains("gptq") && Contains("GGUF"));
    CHECK_THAT(refused(with(llama(), {{"hidden_act", "gelu"}})), Contains("gelu"));
}

TEST_CASE("invalid values in config.json are reported by name") {
    const auto field = [](const char* name, const json& value) { return refused(with(llama(), {{name, value}})); };
    CHECK_THAT(field("hidden_size", "64"), Contains("hidden_size is \"64\", expected a whole number"));
    CHECK_THAT(field("hidden_size", 64.5), Contains("hidden_size is 64.5"));
    CHECK(field("hidden_size", 64.0).empty());
    CHECK_THAT(field("hidden_size", nullptr), Contains("has no hidden_size"));
    CHECK_THAT(field("num_hidden_layers", 2000000000), Contains("number of layers is 2000000000"));
    CHECK_THAT(field("num_hidden_layers", 0), Contains("number of layers"));
    CHECK_THAT(field("num_attention_heads", 0), Contains("num_attention_heads"));
    CHECK_THAT(field("num_key_value_heads", 3), Contains("multiple"));
    CHECK_THAT(field("num_key_value_heads", 0), Contains("key/value heads"));
    CHECK_THAT(field("head_dim", 7), Contains("even"));
    CHECK_THAT(field("vocab_size", -5), Contains("vocabulary"));
    CHECK_THAT(field("vocab_size", 1e300), Contains("vocab_size"));
    CHECK_THAT(field("rms_norm_eps", -1), Contains("rms_norm_eps"));
    CHECK_THAT(field("tie_word_embeddings", 1), Contains("tie_word_embeddings is 1, expected true or false"));

    const TemporaryFolder folder;
    write_file(folder / "config.json", "{\"model_type\": \"llama\",");
    CHECK_THAT(refusal([&] { read_hf_config(folder); }), Contains("not valid JSON") && Contains("config.json"));
    write_file(folder / "config.json", "[1]");
    CHECK_THAT(refusal([&] { read_hf_config(folder); }), Contains("expected a JSON object, found array"));
    write_file(folder / "config.json", std::string(100000, '['));
    CHECK_THAT(refusal([&] { read_hf_config(folder); }), Contains("is nested more than 256 levels deep"));
    write_file(folder / "config.json", "version https://git-lfs and more");
    CHECK_THAT(refusal([&] { read_hf_config(folder); }), Contains("git lfs pull"));
}

TEST_CASE("a directory named SmolLM2 contains a model of that family") {
    const TemporaryFolder folder;
    const fs::path named = folder / "SmolLM2-135M";
    fs::create_directory(named);
    write_file(named / "config.json", llama().dump());
    CHECK(read_hf_config(named).family == "smollm2");
    CHECK(read_hf_config(named).name == "SmolLM2-135M");
    CHECK(read_hf_config(named / "").name == "SmolLM2-135M");
    CHECK(read_hf_config(named).config_json == llama().dump());
}
