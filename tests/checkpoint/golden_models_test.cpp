// The models of scripts/golden/tiny_models.py and k_quants.py: read values equal those in transformers.

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/config_rules.h"
#include "engine/checkpoint/hf_config.h"
#include "engine/families/registry/registry.h"
#include "engine/files/gguf_file.h"
#include "engine/files/safetensors.h"
#include "kernels/bf16.h"
#include "tests/checkpoint/model_files.h"

using namespace kvscope::checkpoint;
using namespace kvscope::checkpoint::testing;
using nlohmann::json;

namespace {

size_t n_elements(const std::vector<int64_t>& shape) {
    size_t n = 1;
    for (const int64_t extent : shape) n *= static_cast<size_t>(extent);
    return n;
}

std::vector<float> read(const Checkpoint& model, const TensorInfo& tensor) {
    std::vector<float> values(n_elements(tensor.shape));
    model.read_f32(tensor.name, values);
    return values;
}

struct Golden {
    explicit Golden(const std::string& name)
        : folder(data("models/" + name)),
          expected(json::parse(read_file(folder / "golden.json"))),
          model(open_checkpoint(folder / expected["model"].get<std::string>())) {}
    fs::path folder;
    json expected;
    std::unique_ptr<Checkpoint> model;
};

void check_frequencies(const ModelConfig& config, const json& expected) {
    const auto frequencies = config.inverse_frequencies();
    REQUIRE(frequencies.size() == expected["inverse_frequencies"].size());
    for (size_t i = 0; i < frequencies.size(); ++i) {
        CHECK(frequencies[i] == Approx(expected["inverse_frequencies"][i].get<double>()).epsilon(4e-7));
    }
    CHECK(config.rope_attention_factor() == Approx(expected["attention_factor"].get<double>()).epsilon(1e-6));
}

}  // namespace

TEST_CASE("every tiny model is read as by transformers") {
    int n_models = 0;
    std::set<std::string> families_left, architectures_left;
    for (const Family& family : families()) {
        families_left.insert(family.name);
        architectures_left.insert(family.gguf_architecture);
    }
    for (const auto& entry : fs::directory_iterator(data("models"))) {
        const Golden golden(entry.path().filename().string());
        INFO(entry.path().filename().string());
        ++n_models;
        families_left.erase(golden.model->config().family);
        if (const fs::path gguf = golden.model->tokenizer_files().gguf; !gguf.empty())
            architectures_left.erase(*GgufFile(gguf).text("general.architecture"));
        std::set<std::string> names;
        const auto names_in_files = expected_tensors(golden.model->config());
        for (const TensorInfo& tensor : golden.model->tensors()) {
            INFO(tensor.name);
            names.insert(tensor.name);
            REQUIRE(golden.model->has(tensor.name));
            const auto values = read(*golden.model, tensor);
            double sum = 0, squares = 0;
            for (const float value : values) {
                sum += static_cast<double>(value);
                squares += static_cast<double>(value) * static_cast<double>(value);
            }
            const std::string& hf_name = names_in_files[names.size() - 1].hf;
            REQUIRE(golden.expected["tensors"].contains(hf_name));
            const auto& expected = golden.expected["tensors"][hf_name];
            CHECK(std::fabs(sum - expected[0].get<double>()) <
                  1e-6 * std::sqrt(squares * static_cast<double>(values.size())));
            CHECK(squares == Approx(expected[1].get<double>()).epsilon(1e-6));
            CHECK(static_cast<double>(values.front()) == Approx(expected[2].get<double>()).epsilon(1e-6));
            CHECK(static_cast<double>(values.back()) == Approx(expected[3].get<double>()).epsilon(1e-6));

            std::vector<uint16_t> rounded(values.size());
            golden.model->read_bf16(tensor.name, rounded);
            bool equal = true;
            for (size_t i = 0; i < values.size(); ++i)
                equal = equal && rounded[i] == kvscope::kernels::bf16_from_float(values[i]).bits;
            CHECK(equal);
        }
        CHECK(names.size() == golden.expected["tensors"].size());
        check_frequencies(golden.model->config(), golden.expected);
    }
    CHECK(n_models >= 15);
    CHECK(families_left == std::set<std::string>{});
    CHECK(architectures_left == std::set<std::string>{});
}

TEST_CASE("configurations of the tiny models") {
    const auto config = [](const char* name) { return Golden(name).model->config(); };

    const auto llama2 = config("llama2-mha");
    CHECK(llama2.family == "llama");
    CHECK(llama2.n_kv_heads == llama2.n_heads);
    CHECK_FALSE(llama2.tied_embeddings);
    CHECK(llama2.sliding_window == std::vector<int64_t>{0, 0});
    CHECK(llama2.rms_norm_eps == 1e-5f);
    CHECK(llama2.context_length == 512);
    CHECK(llama2.eos_ids == std::vector<int32_t>{0, 2});
    CHECK(llama2.bos_id == 0);
    CHECK_FALSE(llama2.add_bos);
    CHECK(json::parse(llama2.config_json)["model_type"] == "llama");

    const auto llama3 = config("llama3-gqa-sharded");
    CHECK(llama3.rope_scaling.kind == RopeScaling::Kind::llama3);
    CHECK(llama3.tied_embeddings);

    const auto biases = config("llama-biases");
    CHECK(biases.qkv_bias);
    CHECK(biases.output_bias);
    CHECK(biases.mlp_bias);
    CHECK(biases.rope_scaling.kind == RopeScaling::Kind::linear);

    CHECK(config("mistral-window").sliding_window == std::vector<int64_t>{11, 11});
    CHECK(config("mistral-window").family == "mistral");
    CHECK(config("ministral-layer-types").sliding_window == std::vector<int64_t>{9, 0, 9});
    CHECK(config("ministral-layer-types").family == "mistral");

    const auto qwen2 = config("qwen2-biases");
    CHECK(qwen2.qkv_bias);
    CHECK_FALSE(qwen2.output_bias);
    CHECK(qwen2.sliding_window == std::vector<int64_t>{0, 0});
    CHECK(qwen2.vocab_size == 272);
    CHECK(config("qwen2-sliding-yarn").sliding_window == std::vector<int64_t>{0, 9});

    const auto qwen3 = config("qwen3-qk-norm");
    CHECK(qwen3.qk_norm);
    CHECK(qwen3.head_dim == 32);
    CHECK(qwen3.n_heads * qwen3.head_dim != qwen3.hidden_size);
    CHECK(config("smollm2-tied").family == "smollm2");

    const auto gguf = config("gguf-llama-f32");
    CHECK(gguf.family == "llama");
    CHECK(gguf.rope_factors.size() == 8);
    CHECK_FALSE(gguf.tied_embeddings);
    CHECK(gguf.eos_ids == std::vector<int32_t>{0, 2});
    CHECK(json::parse(gguf.config_json)["num_hidden_layers"] == 2);
    CHECK(json::parse(gguf.config_json)["rope_factors"].size() == 8);
    CHECK(config("gguf-llama-quantised").output_bias);
    CHECK(config("gguf-qwen2-q8_0").qkv_bias);
    CHECK(config("gguf-qwen3-q4_0").qk_norm);
}

TEST_CASE("values of every quantization equal those of the gguf package") {
    const auto model = open_checkpoint(data("checkpoint/quantisations/model.gguf"));
    const SafetensorsFile expected(data("checkpoint/quantisations/expected.safetensors"));
    std::set<std::string> types;
    for (const TensorInfo& tensor : model->tensors()) {
        const auto found = expected.entries().find(tensor.name);
        if (found == expected.entries().end()) continue;
        INFO(tensor.name << " " << tensor.stored_type);
        types.insert(tensor.stored_type);
        const auto values = read(*model, tensor);
        std::vector<float> wanted(values.size());
        expected.read_f32(found->second, wanted);
        float largest = 0, difference = 0;
        for (size_t i = 0; i < values.size(); ++i) {
            largest = std::max(largest, std::fabs(wanted[i]));
            difference = std::max(difference, std::fabs(values[i] - wanted[i]));
        }
        CHECK(largest > 0.1f);
        CHECK(difference <= 1e-6f * largest);
    }
    CHECK(types.size() == 23);
}

TEST_CASE("rotary frequencies equal those in transformers") {
    const json cases = json::parse(read_file(data("checkpoint/rope.json")))["cases"];
    REQUIRE(cases.size() == 8);
    for (const json& one : cases) {
        const TemporaryFolder folder;
        write_file(folder / "config.json", one["config"].dump());
        INFO(one["config"]["rope_parameters"].dump());
        check_frequencies(read_hf_config(folder), one);
    }
}

TEST_CASE("reading into a buffer of the wrong size is an error") {
    const auto hf = open_checkpoint(data("models/llama2-mha"));
    const auto gguf = open_checkpoint(data("models/gguf-llama-f32/model.gguf"));
    std::vector<float> room(1000);
    CHECK_THROWS_AS(hf->read_f32("model.norm.weight", room), std::invalid_argument);
    CHECK_THROWS_AS(gguf->read_f32("model.norm.weight", room), std::invalid_argument);
    CHECK_THROWS_AS(hf->read_f32("model.norm.bias", room), CheckpointError);
    CHECK_THROWS_AS(gguf->read_f32("model.norm.bias", room), CheckpointError);
    CHECK_FALSE(gguf->has("model.norm.bias"));
}
