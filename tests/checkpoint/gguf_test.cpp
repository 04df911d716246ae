#include <catch2/catch.hpp>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/known_fields.h"
#include "engine/families/registry/registry.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/checkpoint/model_files.h"

using namespace kvscope::checkpoint;
using namespace kvscope::checkpoint::testing;
using Catch::Matchers::Contains;

namespace {

struct Small {
    std::string architecture = "llama";
    uint32_t n_layers = 2;
    bool biases = false;
    bool head = false;
    bool tokens = true;
};

/// Metadata of a model with hidden size 8, two heads of size 4, one KV head, and 12 tokens.
GgufBuilder metadata(const Small& small) {
    const std::string a = small.architecture + ".";
    GgufBuilder file;
    file.text("general.architecture", small.architecture)
        .u32(a + "block_count", small.n_layers)
        .u32(a + "embedding_length", 8)
        .u32(a + "feed_forward_length", 10)
        .u32(a + "attention.head_count", 2)
        .u32(a + "attention.head_count_kv", 1)
        .u32(a + "context_length", 100)
        .f32(a + "attention.layer_norm_rms_epsilon", 1e-5f);
    if (small.tokens) file.texts("tokenizer.ggml.tokens", {"a", "b", "<|im_end|>", "d", "<|fim_pad|>", "<eos>"});
    return file;
}

GgufBuilder& add_layer(GgufBuilder& file, const Small& small, uint32_t layer) {
    const std::string b = "blk." + std::to_string(layer) + ".";
    const auto first = static_cast<float>(1000 * layer);
    file.f32_tensor(b + "attn_norm.weight", {8})
        .f32_tensor(b + "ffn_norm.weight", {8})
        .f32_tensor(b + "attn_q.weight", {8, 8}, first)
        .f32_tensor(b + "attn_k.weight", {4, 8}, first)
        .f32_tensor(b + "attn_v.weight", {4, 8}, first)
        .f32_tensor(b + "attn_output.weight", {8, 8})
        .f32_tensor(b + "ffn_gate.weight", {10, 8})
        .f32_tensor(b + "ffn_up.weight", {10, 8})
        .f32_tensor(b + "ffn_down.weight", {8, 10});
    if (small.biases) {
        file.f32_tensor(b + "attn_q.bias", {8}).f32_tensor(b + "attn_k.bias", {4}).f32_tensor(b + "attn_v.bias", {4});
    }
    return file;
}

GgufBuilder& add_tensors(GgufBuilder& file, const Small& small) {
    file.f32_tensor("token_embd.weight", {12, 8}).f32_tensor("output_norm.weight", {8});
    if (small.head) file.f32_tensor("output.weight", {12, 8});
    for (uint32_t layer = 0; layer < small.n_layers; ++layer) add_layer(file, small, layer);
    return file;
}

class Opened {
 public:
    explicit Opened(const GgufBuilder& file) : Opened(file.bytes()) {}
    explicit Opened(const std::string& bytes) {
        write_file(folder_ / "m.gguf", bytes);
        message = refusal([&] { model = open_checkpoint(folder_ / "m.gguf"); });
    }
    const ModelConfig& config() const {
        INFO(message);
        REQUIRE(model != nullptr);
        return model->config();
    }
    std::unique_ptr<Checkpoint> model;
    std::string message;

 private:
    TemporaryFolder folder_;
};

std::vector<float> read(const Checkpoint& model, const std::string& name, size_t n) {
    std::vector<float> values(n);
    model.read_f32(name, values);
    return values;
}

template <typename Change>
Opened changed(const Small& small, Change&& change) {
    GgufBuilder file = metadata(small);
    change(file);
    add_tensors(file, small);
    return Opened(file);
}

}  // namespace

TEST_CASE("rows of Q and K are reordered only for the architecture llama") {
    Small small{.biases = true};
    auto file = metadata(small);
    const Opened llama(add_tensors(file, small));
    REQUIRE(llama.model != nullptr);
    // With heads of size 4, stored row 2j + half of a head is row j + 2 half.
    const auto q = read(*llama.model, "model.layers.1.self_attn.q_proj.weight", 64);
    for (int row = 0; row < 8; ++row) {
        const int in_head = row % 4;
        const int stored = row - in_head + in_head % 2 * 2 + in_head / 2;
        CHECK(q[static_cast<size_t>(row) * 8] == 1000 + 8 * static_cast<float>(stored));
    }
    CHECK(read(*llama.model, "model.layers.0.self_attn.q_proj.bias", 8) == std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7});
    CHECK(read(*llama.model, "model.layers.0.self_attn.k_proj.bias", 4) == std::vector<float>{0, 2, 1, 3});
    CHECK(read(*llama.model, "model.layers.0.self_attn.v_proj.bias", 4) == std::vector<float>{0, 1, 2, 3});
    CHECK(read(*llama.model, "model.layers.0.self_attn.v_proj.weight", 32)[8] == 8);

    small.architecture = "qwen2";
    auto other = metadata(small);
    const Opened qwen2(add_tensors(other, small));
    REQUIRE(qwen2.model != nullptr);
    CHECK(read(*qwen2.model, "model.layers.0.self_attn.q_proj.bias", 8) == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(read(*qwen2.model, "model.layers.0.self_attn.q_proj.weight", 64)[8] == 8);
}

TEST_CASE("bf16 tensors are copied, including NaN bits") {
    const Small small{.n_layers = 1};
    auto file = metadata(small);
    std::string bits(12 * 8 * 2, '\0');
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<char>(i * 37 + 11);
    bits[0] = '\x81', bits[1] = '\x7f';
    file.tensor("token_embd.weight", {12, 8}, 30, bits).f32_tensor("output_norm.weight", {8});
    const Opened opened(add_layer(file, small, 0));
    REQUIRE(opened.model != nullptr);
    std::vector<uint16_t> out(96);
    opened.model->read_bf16("model.embed_tokens.weight", out);
    CHECK(std::memcmp(out.data(), bits.data(), bits.size()) == 0);
}

TEST_CASE("metadata become the configuration") {
    const Small small;
    const auto plain = changed(small, [](auto&) {});
    CHECK(plain.config().family == "llama");
    CHECK(plain.config().name == "m");
    CHECK(plain.config().head_dim == 4);
    CHECK(plain.config().vocab_size == 12);
    CHECK(plain.config().tied_embeddings);
    CHECK(plain.config().rope_theta == 10000.0);
    CHECK(plain.config().sliding_window == std::vector<int64_t>{0, 0});
    CHECK(plain.config().eos_ids == std::vector<int32_t>{2, 4, 5});
    CHECK(plain.config().bos_id == -1);
    CHECK_FALSE(plain.config().add_bos);
    CHECK(plain.model->tokenizer_files().gguf == plain.model->path());
    CHECK_FALSE(changed(Small{.head = true}, [](auto&) {}).config().tied_embeddings);

    CHECK(changed(small, [](auto& f) { f.text("general.name", "Mistral 7B"); }).config().family == "mistral");
    CHECK(changed(small, [](auto& f) { f.text("general.basename", "SmolLM2"); }).config().family == "smollm2");

    const auto linear = changed(small, [](auto& f) { f.f32("llama.rope.scaling.factor", 4); });
    CHECK(linear.config().rope_scaling.kind == RopeScaling::Kind::linear);
    CHECK(linear.config().inverse_frequencies()[0] == 0.25f);
    const auto yarn = changed(small, [](auto& f) {
        f.text("llama.rope.scaling.type", "yarn")
            .f32("llama.rope.scaling.factor", 4)
            .u32("llama.rope.scaling.original_context_length", 25);
    });
    CHECK(yarn.config().rope_scaling.original_context == 25);
    CHECK(yarn.config().rope_attention_factor() == Approx(1.1386294));
    CHECK_THAT(changed(small, [](auto& f) { f.text("llama.rope.scaling.type", "longrope"); }).message,
               Contains("longrope"));

    const auto window = changed(small, [](auto& f) { f.u32("llama.attention.sliding_window", 6); });
    CHECK(window.config().sliding_window == std::vector<int64_t>{6, 6});
    const auto pattern = changed(small, [](auto& f) {
        f.u32("llama.attention.sliding_window", 6).flags("llama.attention.sliding_window_pattern", {false, true});
    });
    CHECK(pattern.config().sliding_window == std::vector<int64_t>{0, 6});

    const auto sentencepiece = changed(small, [](auto& f) { f.text("tokenizer.ggml.model", "llama"); });
    CHECK(sentencepiece.config().bos_id == 1);
    CHECK(sentencepiece.config().add_bos);
    const auto special = changed(small, [](auto& f) {
        f.u32("tokenizer.ggml.bos_token_id", 3)
            .u32("tokenizer.ggml.eos_token_id", 1)
            .u32("tokenizer.ggml.eot_token_id", 0);
    });
    CHECK(special.config().bos_id == 3);
    CHECK(special.config().eos_ids == std::vector<int32_t>{0, 1, 2, 4, 5});
}

TEST_CASE("a byte-level vocabulary without BOS or EOS ids has neither, whatever its token 11 is") {
    const auto tokenizer_of = [](const char* model, const char* pre, auto&& change) {
        const TemporaryFolder folder;
        GgufBuilder file;
        std::vector<std::string> tokens;
        for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
        tokens[20] = "<|im_end|>";
        file.text("general.architecture", "llama").text("tokenizer.ggml.model", model).text("tokenizer.ggml.pre", pre);
        change(file, tokens);
        file.texts("tokenizer.ggml.tokens", tokens).texts("tokenizer.ggml.merges", {"a b"});
        write_file(folder / "v.gguf", file.bytes());
        return open_tokenizer(folder / "v.gguf");
    };
    using Tokens = std::vector<std::string>;
    const auto ends = [](const Tokenizer& tokenizer) {
        const auto all = tokenizer.end_of_generation();
        return std::vector<int32_t>(all.begin(), all.end());
    };
    const auto plain = tokenizer_of("gpt2", "smollm", [](GgufBuilder&, Tokens&) {});
    CHECK_FALSE(plain->bos());
    CHECK_FALSE(plain->eos());
    CHECK(ends(*plain) == std::vector<int32_t>{20});
    CHECK(plain->encode("ac", true, true) == std::vector<int32_t>{0, 2});
    // A token whose text ends generation remains one.
    const auto eleven = tokenizer_of("gpt2", "smollm", [](GgufBuilder&, Tokens& t) { t[11] = "<|endoftext|>"; });
    CHECK_FALSE(eleven->eos());
    CHECK(ends(*eleven) == std::vector<int32_t>{11, 20});
    const auto named = tokenizer_of("gpt2", "llama-bpe", [](GgufBuilder& f, Tokens&) {
        f.u32("tokenizer.ggml.bos_token_id", 3).u32("tokenizer.ggml.eos_token_id", 11);
    });
    CHECK(named->bos() == 3);
    CHECK(named->eos() == 11);
    CHECK(ends(*named) == std::vector<int32_t>{11, 20});
    CHECK(named->encode("ac", true, true) == std::vector<int32_t>{3, 0, 2});
    // Llama 3's tokenizer starts each text with BOS.
    CHECK_THAT(refusal([&] { tokenizer_of("gpt2", "llama-bpe", [](GgufBuilder&, Tokens&) {}); }),
               Contains("v.gguf: ") && Contains("tokenizer.ggml.bos_token_id"));
    CHECK_THAT(refusal([&] {
                   tokenizer_of("gpt2", "smollm", [](auto& f, Tokens&) { f.u32("tokenizer.ggml.eos_token_id", 26); });
               }),
               Contains("tokenizer.ggml.eos_token_id is 26, expected a token id from 0 to 25"));
    // SentencePiece's own ids of <s> and </s>.
    const auto sentencepiece = open_tokenizer(fs::path(KVSCOPE_LLAMA_SOURCE) / "models/ggml-vocab-llama-spm.gguf");
    CHECK(sentencepiece->bos() == 1);
    CHECK(sentencepiece->eos() == 2);
}

TEST_CASE("a merge with an unknown result is reported if llama.cpp omits its text") {
    const TemporaryFolder folder;
    GgufBuilder file;
    file.text("general.architecture", "llama")
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "smollm")
        .texts("tokenizer.ggml.tokens", {"a", "b", "Ã", "©"})  // the bytes of é
        .texts("tokenizer.ggml.merges", {"Ã ©"});
    write_file(folder / "v.gguf", file.bytes());
    const auto tokenizer = open_tokenizer(folder / "v.gguf");
    CHECK(tokenizer->encode_with_ends("axb", false, true).ends == std::vector<uint32_t>{1, 3});
    CHECK_THAT(refusal([&] { tokenizer->encode_with_ends("aéb", false, true); }),
               Contains("v.gguf: ") && Contains("at byte 1") && Contains("tokenizer.ggml.merges"));
}

TEST_CASE("unsupported metadata are refused by key unless neutral; unknown keys are listed") {
    const Small small;
    const auto message = [&](auto&& change) { return changed(small, change).message; };
    for (const char* key :
         {"attention.scale", "attn_logit_softcapping", "final_logit_softcapping", "attention.clamp_kqv",
          "attention.max_alibi_bias", "attention.temperature_scale", "rope.scaling.alpha"}) {
        INFO(key);
        const std::string whole = std::string("llama.") + key;
        CHECK_THAT(message([&](auto& f) { f.f32(whole, 0.5f); }),
                   Contains("m.gguf: ") && Contains(whole + " is 0.5, which kvscope does not support; expected 0"));
        CHECK(message([&](auto& f) { f.f32(whole, 0); }).empty());
    }
    for (const char* key : {"logit_scale", "residual_scale", "embedding_scale", "attention.value_scale"}) {
        INFO(key);
        const std::string whole = std::string("llama.") + key;
        CHECK_THAT(message([&](auto& f) { f.f32(whole, 0.25f); }),
                   Contains(whole + " is 0.25") && Contains("expected 1"));
        CHECK(message([&](auto& f) { f.f32(whole, 1); }).empty());
    }
    CHECK_THAT(message([](auto& f) { f.key("llama.attention.causal", 7, uint8_t{0}); }),
               Contains("attention.causal is 0"));
    CHECK_THAT(message([](auto& f) { f.f32("llama.rope.scaling.attn_factor", 0.5f); }), Contains("attn_factor is 0.5"));
    CHECK_THAT(message([](auto& f) { f.text("llama.hidden_activation", "gelu"); }), Contains("is \"gelu\""));
    CHECK(message([](auto& f) { f.text("llama.hidden_activation", "silu"); }).empty());
    CHECK_THAT(message([](auto& f) { f.u32("llama.expert_count", 8); }), Contains("llama.expert_count is 8"));

    const TemporaryFolder folder;
    auto file = metadata(small);
    file.u32("llama.block_count_of_tomorrow", 1).text("general.author", "x").u32("tokenizer.ggml.new_token_id", 2);
    file.u32("other.block_count", 2);
    write_file(folder / "u.gguf", add_tensors(file, small).bytes());
    const auto unknown = unknown_fields(folder / "u.gguf");
    REQUIRE(unknown.size() == 1);
    CHECK(unknown[0].names == std::vector<std::string>{"llama.block_count_of_tomorrow", "other.block_count",
                                                       "tokenizer.ggml.new_token_id"});
    CHECK(unknown_fields(KVSCOPE_DEFAULT_MODEL).empty());
}

TEST_CASE("a key that the model's family reads is not refused") {
    const Small small;
    const TemporaryFolder folder;
    auto file = metadata(small);
    write_file(folder / "s.gguf", add_tensors(file.f32("llama.attention.scale", 0.5f), small).bytes());
    const GgufFile opened(folder / "s.gguf");
    Family family = family_named("llama");
    CHECK_THAT(refusal([&] { refuse_unsupported_keys(opened, family); }), Contains("attention.scale is 0.5"));
    family.keys.rope_theta.gguf = "attention.scale";
    CHECK(refusal([&] { refuse_unsupported_keys(opened, family); }).empty());
}

TEST_CASE("rope_freqs.weight divides the frequencies") {
    const Small small{.n_layers = 1};
    auto file = metadata(small);
    add_tensors(file, small).f32_tensor("rope_freqs.weight", {2}, 2);
    const Opened opened(file);
    CHECK(opened.config().rope_factors == std::vector<float>{2, 3});
    CHECK(opened.config().inverse_frequencies()[0] == 0.5f);
    auto wrong = metadata(small);
    add_tensors(wrong, small).f32_tensor("rope_freqs.weight", {3}, 2);
    CHECK_THAT(Opened(wrong).message, Contains("rope_freqs.weight") && Contains("expected (2)"));
    auto zero = metadata(small);
    add_tensors(zero, small).f32_tensor("rope_freqs.weight", {2}, 0);
    CHECK_THAT(Opened(zero).message, Contains("rope factor"));
}

TEST_CASE("unsupported GGUF models are refused") {
    const char* supported = "supported are Llama 2 and 3.x";
    for (const char* architecture : {"qwen3moe", "gemma3", "qwen2vl", "mamba", "llama4"}) {
        const Small small{.architecture = architecture};
        CHECK_THAT(changed(small, [](auto&) {}).message, Contains(supported) && Contains(architecture));
    }
    const Small small;
    CHECK_THAT(changed(small, [](auto& f) { f.u32("llama.expert_count", 8); }).message, Contains("experts"));
    CHECK_THAT(changed(small, [](auto& f) { f.text("general.type", "adapter"); }).message, Contains("adapter"));
    CHECK_THAT(changed(Small{.architecture = "qwen3"}, [](auto&) {}).message, Contains("attn_q_norm.weight (4)"));
    CHECK_THAT(changed(Small{.architecture = "qwen2"}, [](auto&) {}).message, Contains("attn_q.bias (8)"));
}

TEST_CASE("invalid metadata and tensors are reported by name") {
    const Small small;
    const auto message = [&](auto&& change) { return changed(small, change).message; };
    CHECK_THAT(message([](auto& f) { f.text("llama.vocab_size", "12"); }), Contains("llama.vocab_size"));
    CHECK_THAT(message([](auto& f) { f.u32("llama.vocab_size", 13); }), Contains("13") && Contains("12 rows"));
    CHECK_THAT(message([](auto& f) { f.u32("llama.attention.key_length", 6); }), Contains("same number for all three"));
    CHECK_THAT(message([](auto& f) { f.u32("llama.rope.dimension_count", 2); }), Contains("rotates 2"));
    CHECK_THAT(message([](auto& f) { f.u32("general.alignment", 33); }), Contains("power of two"));
    CHECK_THAT(message([](auto& f) { f.u32("llama.block_count", 3); }), Contains("twice"));
    CHECK_THAT(message([](auto& f) { f.f32_tensor("token_embd.weight", {1, 1}); }), Contains("twice"));
    CHECK_THAT(message([](auto& f) { f.f32_tensor("blk.0.attn_q.scale", {1}); }),
               Contains("holds tensor blk.0.attn_q.scale"));
    CHECK_THAT(message([](auto& f) { f.tensor("x", {4}, 2, "aa"); }), Contains("multiple of 32"));
    CHECK_THAT(message([](auto& f) { f.tensor("x", {4}, 999, "aa"); }), Contains("unknown type 999"));
    CHECK_THAT(message([](auto& f) { f.tensor("x", {1, 1, 1, 1, 1}, 0, "aa"); }), Contains("5 dimensions"));
    CHECK_THAT(message([](auto& f) { f.tensor("x", {-1}, 0, "aa"); }), Contains("impossible shape"));
    CHECK_THAT(message([](auto& f) { f.tensor("x", {INT64_MAX, 3}, 0, "aa"); }), Contains("impossible shape"));
    CHECK_THAT(message([](auto& f) { f.tensor(std::string(64, 'x'), {1}, 0, "aaaa"); }), Contains("64 bytes"));
    CHECK_THAT(message([](auto& f) { f.key("k", 77, uint32_t{1}); }), Contains("unknown type 77"));
    CHECK_THAT(message([](auto& f) { f.u32("", 1); }), Contains("empty metadata key"));

    auto short_tensor = metadata(small);
    add_tensors(short_tensor, small).tensor("z", {1 << 20, 1 << 20}, 0, "");
    CHECK_THAT(Opened(short_tensor).message, Contains("tensor z needs bytes"));
    auto shape = metadata(Small{.n_layers = 3});
    CHECK_THAT(Opened(add_tensors(shape, small)).message, Contains("no tensor blk.2.attn_norm.weight (8)"));
}

TEST_CASE("messages about damaged files contain no raw bytes") {
    const Small small{.architecture = "x\x1b[31m\xff\r\a"};
    CHECK_THAT(changed(small, [](auto&) {}).message, Contains("\"x?[31m\xef\xbf\xbd??\""));
    const auto named = changed(Small(), [](auto& f) { f.text("general.name", "caf\xe9"); });
    CHECK(named.config().name == "caf\xef\xbf\xbd");
    CHECK(nlohmann::json::parse(named.config().config_json)["_name_or_path"] == named.config().name);
}

TEST_CASE("other files and unsupported versions are refused") {
    auto bytes = GgufBuilder().bytes();
    const auto version = [&](uint32_t v) {
        std::memcpy(bytes.data() + 4, &v, 4);
        return Opened(bytes).message;
    };
    CHECK_THAT(version(1), Contains("version 1"));
    CHECK_THAT(version(4), Contains("version 4"));
    CHECK_THAT(version(0x03000000), Contains("big-endian"));
    CHECK_THAT(version(3), Contains("general.architecture"));
    bytes[0] = 'X';
    CHECK_THAT(Opened(bytes).message, Contains("does not begin with"));
    CHECK_THAT(Opened("version https://git-lfs.github.com/spec/v1").message, Contains("git lfs pull"));
    CHECK_THAT(Opened("GGUF").message, Contains("at least 24"));
}

TEST_CASE("a split set opens by its first file, and missing files are reported") {
    const TemporaryFolder folder;
    const Small small{.biases = true};
    const auto name = [&](int i) { return folder / ("big-0000" + std::to_string(i) + "-of-00003.gguf"); };
    auto first = metadata(small);
    first.u16("split.no", 0).u16("split.count", 3).u32("split.tensors.count", 26);
    first.f32_tensor("token_embd.weight", {12, 8}).f32_tensor("output_norm.weight", {8});
    write_file(name(1), first.bytes());
    for (uint16_t i = 1; i < 3; ++i) {
        GgufBuilder next;
        next.u16("split.no", i).u16("split.count", 3);
        write_file(name(i + 1), add_layer(next, small, i - 1u).bytes());
    }
    const auto model = open_checkpoint(name(1));
    CHECK(read(*model, "model.layers.1.self_attn.v_proj.weight", 32)[0] == 1000);
    CHECK(read(*model, "model.layers.0.self_attn.v_proj.weight", 32)[0] == 0);
    const auto fingerprint = model->fingerprint();

    const auto refused = [&](int i) { return refusal([&] { open_checkpoint(name(i)); }); };
    CHECK_THAT(refused(2), Contains("give the first, big-00001-of-00003.gguf"));
    fs::rename(name(3), folder / "kept");
    CHECK_THAT(refused(1), Contains("big-00003-of-00003.gguf") && Contains("is missing"));
    fs::copy_file(name(2), name(3));
    CHECK_THAT(refused(1), Contains("another file of the set"));
    std::string changed = read_file(folder / "kept");
    changed[changed.size() - 30] = static_cast<char>(changed[changed.size() - 30] ^ 1);
    write_file(name(3), changed);
    CHECK(open_checkpoint(name(1))->fingerprint() != fingerprint);
    fs::rename(name(1), folder / "alone.gguf");
    CHECK_THAT(refusal([&] { open_checkpoint(folder / "alone.gguf"); }), Contains("ends in -00001-of-00003.gguf"));
}
