#include "engine/checkpoint/hf_directory.h"

#include <catch2/catch.hpp>

#include "engine/checkpoint/config_rules.h"
#include "engine/checkpoint/hf_config.h"
#include "engine/files/safetensors.h"
#include "tests/checkpoint/model_files.h"

using namespace kvscope::checkpoint;
using namespace kvscope::checkpoint::testing;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

json small_config() {
    return {
        {"model_type", "llama"},  {"vocab_size", 12},         {"hidden_size", 8},         {"intermediate_size", 10},
        {"num_hidden_layers", 1}, {"num_attention_heads", 2}, {"num_key_value_heads", 1}, {"tie_word_embeddings", true},
        {"eos_token_id", 2}};
}

/// A complete one-layer model in its own folder.
class SmallModel {
 public:
    SmallModel() {
        write_file(folder / "config.json", small_config().dump());
        float first = 0;
        for (const auto& tensor : expected_tensors(read_hf_config(folder))) {
            tensors[tensor.name] = f32_tensor(tensor.shape, first += 1000);
        }
    }
    std::string refused() {
        write_file(folder / "model.safetensors", safetensors_bytes(tensors));
        return refusal([&] { open_hf_directory(folder); });
    }
    std::unique_ptr<Checkpoint> open() {
        write_file(folder / "model.safetensors", safetensors_bytes(tensors));
        return open_hf_directory(folder);
    }

    TemporaryFolder folder;
    StoredTensors tensors;
};

void write_header(const fs::path& path, const json& header, size_t data_bytes) {
    const std::string text = header.dump();
    std::string size(8, '\0');
    const uint64_t n = text.size();
    std::memcpy(size.data(), &n, 8);
    write_file(path, size + text + std::string(data_bytes, '\0'));
}

}  // namespace

TEST_CASE("headers of safetensors files are checked") {
    const TemporaryFolder folder;
    const fs::path path = folder / "x.safetensors";
    const auto refused = [&](const json& header, size_t data_bytes) {
        write_header(path, header, data_bytes);
        return refusal([&] { SafetensorsFile file(path); });
    };
    const auto entry = [](const char* dtype, const json& shape, const json& offsets) {
        return json{{"dtype", dtype}, {"shape", shape}, {"data_offsets", offsets}};
    };
    CHECK(refused({{"a", entry("F32", {2, 3}, {0, 24})}}, 24).empty());
    CHECK(refused({{"a", entry("F32", json::array(), {0, 4})}}, 4).empty());
    CHECK(refused({{"a", entry("F32", {0, 3}, {0, 0})}}, 0).empty());
    CHECK_THAT(refused({{"a", entry("F32", {2, 3}, {0, 24})}}, 23), Contains("truncated") && Contains("tensor a"));
    CHECK_THAT(refused({{"a", entry("F32", {2, 3}, {0, 24})}}, 25), Contains("describes 24"));
    CHECK_THAT(refused({{"a", entry("F32", {2, 3}, {0, 20})}}, 20), Contains("has 20 bytes, expected 24"));
    CHECK_THAT(refused({{"a", entry("F32", {2}, {8, 0})}}, 8), Contains("tensor a"));
    CHECK_THAT(refused({{"a", entry("F32", {2}, {-8, 0})}}, 8), Contains("expected a whole number"));
    CHECK_THAT(refused({{"a", entry("F32", {-2}, {0, 8})}}, 8), Contains("dimension"));
    CHECK_THAT(refused({{"a", entry("F32", {2}, {0, 8})}, {"b", entry("F32", {2}, {4, 12})}}, 12), Contains("overlap"));
    CHECK_THAT(refused({{"a", entry("F32", {1}, {0, 4})}, {"b", entry("F32", {1}, {8, 12})}}, 12), Contains("gap"));
    CHECK_THAT(refused({{"a", entry("F32", {4294967296, 4294967296}, {0, 8})}}, 8), Contains("far more"));
    CHECK_THAT(refused({{"a", entry("F32", {18446744073709551615u}, {0, 8})}}, 8), Contains("far more"));
    CHECK_THAT(refused({{"a", 7}}, 0), Contains("dtype, shape"));
    CHECK_THAT(refused({{"a", {{"dtype", "F32"}}}}, 0), Contains("dtype, shape"));
    CHECK_THAT(refused(json::array({1}), 0), Contains("not a JSON object"));

    const auto raw = [&](const std::string& bytes) {
        write_file(path, bytes);
        return refusal([&] { SafetensorsFile file(path); });
    };
    CHECK_THAT(raw(""), Contains("has 0 bytes"));
    CHECK_THAT(raw(std::string(8, '\xff')), Contains("header would have"));
    CHECK_THAT(raw(std::string("\x20\0\0\0\0\0\0\0{}", 10)), Contains("truncated"));
    CHECK_THAT(raw(std::string("\x02\0\0\0\0\0\0\0{x", 10)), Contains("the header is not valid JSON"));
    CHECK_THAT(raw("version https://git-lfs pointer"), Contains("git lfs pull"));
    CHECK_THAT(refusal([&] { SafetensorsFile file(folder / "none"); }), Contains("No such file"));
    CHECK_THAT(refusal([&] { SafetensorsFile file(folder); }), Contains("not a regular file"));
}

TEST_CASE("a complete directory opens with the stored values") {
    SmallModel small;
    const auto model = small.open();
    const StoredTensor& stored = small.tensors.at("model.layers.0.mlp.up_proj.weight");
    std::vector<float> values(80);
    model->read_f32("model.layers.0.mlp.up_proj.weight", values);
    CHECK(std::memcmp(values.data(), stored.bytes.data(), stored.bytes.size()) == 0);
    CHECK(model->tensors().size() == small.tensors.size());
    CHECK(model->tensors().front().stored_type == "F32");
    CHECK(model->tokenizer_files().tokenizer_json.empty());
    write_file(small.folder / "tokenizer.json", "{}");
    CHECK(model->tokenizer_files().tokenizer_json == small.folder / "tokenizer.json");
    CHECK(model->tokenizer_files().gguf.empty());
}

TEST_CASE("missing, misshapen and unknown tensors are reported with the expected and the found shape") {
    {
        SmallModel small;
        small.tensors.erase("model.layers.0.self_attn.k_proj.weight");
        CHECK_THAT(small.refused(), Contains("no tensor model.layers.0.self_attn.k_proj.weight (4, 8)"));
    }
    {
        SmallModel small;
        small.tensors["model.layers.0.self_attn.k_proj.weight"] = f32_tensor({8, 4});
        CHECK_THAT(small.refused(), Contains("has the shape (8, 4)") && Contains("requires (4, 8)"));
    }
    {
        SmallModel small;
        auto& tensor = small.tensors["model.norm.weight"];
        tensor.dtype = "I32";
        CHECK_THAT(small.refused(), Contains("model.norm.weight is of type I32"));
    }
    {
        SmallModel small;
        small.tensors["model.layers.0.self_attn.q_proj.bias"] = f32_tensor({8});
        CHECK_THAT(small.refused(), Contains("holds tensor model.layers.0.self_attn.q_proj.bias"));
    }
    {
        SmallModel small;
        small.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = f32_tensor({2});
        small.tensors["model.layers.7.mlp.extra.weight"] = f32_tensor({2});
        CHECK(small.refused().empty());
    }
}

TEST_CASE("a stored head determines whether embeddings are tied") {
    SmallModel small;
    CHECK(small.open()->config().tied_embeddings);
    small.tensors["lm_head.weight"] = small.tensors["model.embed_tokens.weight"];
    CHECK(small.open()->config().tied_embeddings);
    small.tensors["lm_head.weight"] = f32_tensor({12, 8}, 5);
    CHECK_FALSE(small.open()->config().tied_embeddings);
    small.tensors["lm_head.weight"] = f32_tensor({12, 9}, 5);
    CHECK_THAT(small.refused(), Contains("lm_head.weight") && Contains("(12, 8)"));

    small.tensors.erase("lm_head.weight");
    auto config = small_config();
    config["tie_word_embeddings"] = false;
    write_file(small.folder / "config.json", config.dump());
    CHECK_THAT(small.refused(), Contains("no tensor lm_head.weight (12, 8)"));
}

TEST_CASE("missing shards, and shards that differ from the index, are reported by name") {
    const TemporaryFolder folder;
    fs::copy(data("models/llama3-gqa-sharded"), folder, fs::copy_options::recursive);
    const auto refused = [&] { return refusal([&] { open_hf_directory(folder); }); };
    CHECK(refused().empty());
    fs::remove(folder / "model-00002-of-00003.safetensors");
    CHECK_THAT(refused(), Contains("model-00002-of-00003.safetensors") && Contains("is missing"));
    fs::copy_file(folder / "model-00001-of-00003.safetensors", folder / "model-00002-of-00003.safetensors");
    CHECK_THAT(refused(), Contains("which another shard holds as well") || Contains("lists the tensor in this file"));

    const auto index = [&](const json& map) {
        write_file(folder / "model.safetensors.index.json", json{{"weight_map", map}}.dump());
        return refused();
    };
    CHECK_THAT(index({{"a", "../secret"}}), Contains("same folder"));
    CHECK_THAT(index({{"a", 3}}), Contains("same folder"));
    CHECK_THAT(index(json::array({1})), Contains("no weight_map"));
    write_file(folder / "model.safetensors.index.json", "{");
    CHECK_THAT(refused(), Contains("not valid JSON"));
}

TEST_CASE("open_checkpoint describes paths that are not models") {
    const TemporaryFolder folder;
    const auto refused = [](const fs::path& path) { return refusal([&] { open_checkpoint(path); }); };
    CHECK_THAT(refused(folder / "none"), Contains("does not exist"));
    CHECK_THAT(refused(folder), Contains("no config.json"));
    write_file(folder / "model.gguf", "GGUX");
    CHECK_THAT(refused(folder), Contains("model.gguf: give that file"));
    CHECK_THAT(refused(folder / "model.gguf"), Contains("GGUF file has at least 24"));
    write_file(folder / "config.json", small_config().dump());
    CHECK_THAT(refused(folder), Contains("model.gguf: give that file"));
    fs::remove(folder / "model.gguf");
    CHECK_THAT(refused(folder), Contains("neither model.safetensors nor"));
    write_file(folder / "pytorch_model.bin", "PK");
    CHECK_THAT(refused(folder), Contains("save_pretrained"));
    CHECK_THAT(refused(folder / "pytorch_model.bin"), Contains("pickled"));
    CHECK_THAT(refused(folder / "config.json"), Contains("not a GGUF file, a safetensors file or a directory"));
    CHECK_THAT(refused("/dev/null"), Contains("not a regular file"));
}

TEST_CASE("files in place of a model are described, with advice") {
    const TemporaryFolder folder;
    const auto refused = [](const fs::path& path) { return refusal([&] { open_checkpoint(path); }); };
    const auto fresh = [&](const std::string& name) {
        fs::create_directories(folder / name);
        return folder / name;
    };

    const fs::path lora = fresh("lora");
    write_file(lora / "adapter_config.json", R"({"base_model_name_or_path": "org/base", "peft_type": "LORA"})");
    write_file(lora / "adapter_model.safetensors", "");
    for (const fs::path& path : {lora, lora / "adapter_model.safetensors"})
        CHECK_THAT(refused(path), Contains(path.string()) && Contains("LoRA adapter") &&
                                      Contains("for the model org/base") && Contains("expected a whole model") &&
                                      Contains("merge_and_unload"));
    write_file(lora / "config.json", small_config().dump());
    CHECK_THAT(refused(lora), Contains("but holds a LoRA adapter"));

    const fs::path shards = fresh("shards");
    write_file(shards / "config.json", small_config().dump());
    write_file(shards / "model-00001-of-00002.safetensors", "");
    write_file(shards / "model-00002-of-00002.safetensors", "");
    CHECK_THAT(refused(shards), Contains("holds model-00001-of-00002.safetensors as 2 of the shards") &&
                                    Contains("no model.safetensors.index.json") && Contains("Download that file"));

    const fs::path variant = fresh("variant");
    write_file(variant / "config.json", small_config().dump());
    write_file(variant / "model.fp16.safetensors", "");
    CHECK_THAT(refused(variant), Contains("but the variant model.fp16.safetensors: give that file's path"));
    write_file(variant / "model.fp16-00001-of-00002.safetensors", "");
    CHECK_THAT(refused(variant), Contains("2 files of a variant") && Contains("without a variant"));

    const fs::path authors = fresh("authors");
    write_file(authors / "params.json", "{}");
    write_file(authors / "consolidated.safetensors", "");
    const auto of_authors = [&](const char* before) {
        CHECK_THAT(refused(authors), Contains(before) &&
                                         Contains("consolidated.safetensors: weights in the model authors' format") &&
                                         Contains("expected transformers' format") && Contains("Download"));
    };
    of_authors("has no config.json, but holds");
    write_file(authors / "config.json", small_config().dump());
    of_authors("neither model.safetensors nor");
    write_file(authors / "consolidated.safetensors",
               safetensors_bytes({{"tok_embeddings.weight", f32_tensor({2, 2})}}));
    CHECK_THAT(refused(authors / "consolidated.safetensors"), Contains("the model authors' format"));

    const fs::path snapshot = fresh("hub/models--org--name/snapshots/abc");
    fs::create_symlink("../../blobs/123", snapshot / "config.json");
    const auto dangles = [&](const fs::path& path, const std::string& name) {
        CHECK_THAT(refused(path), Contains(name + ": is a link to ../../blobs/123, which does not exist: ") &&
                                      Contains("`hf download org/name`"));
    };
    dangles(snapshot, "config.json");
    fs::remove(snapshot / "config.json");
    write_file(snapshot / "config.json", small_config().dump());
    fs::create_symlink("../../blobs/123", snapshot / "model.safetensors");
    dangles(snapshot, "model.safetensors");
    fs::create_symlink("../../blobs/123", snapshot / "tokenizer.json");
    dangles(snapshot, "tokenizer.json");
    fs::create_symlink("../../blobs/123", snapshot / "m.gguf");
    dangles(snapshot / "m.gguf", "m.gguf");
    fs::create_symlink("nowhere", folder / "link");
    CHECK_THAT(refused(folder / "link"), Contains("is a link to nowhere") && Contains("remove the link"));
}

TEST_CASE("a file of another kind is named by its kind") {
    SmallModel small;
    small.open();
    const auto with = [&](const char* name, const std::string& bytes) {
        const TemporaryFolder folder;
        fs::copy(small.folder, folder, fs::copy_options::recursive);
        write_file(folder / name, bytes);
        const bool is_own = std::string_view(name) == "other.bin";
        return refusal([&] { open_checkpoint(is_own ? folder / name : fs::path(folder)); });
    };
    for (const char* name : {"model.safetensors", "config.json"}) {
        INFO(name);
        CHECK_THAT(with(name, "<!DOCTYPE html><p>404"),
                   Contains(name) && Contains("a web page (HTML)") && Contains("expected") && !Contains("valid JSON"));
        CHECK_THAT(with(name, "PK\x03\x04 and so on"), Contains("a ZIP archive") && !Contains("valid JSON"));
        CHECK_THAT(with(name, "GGUF and so on"), Contains("is a GGUF file, expected"));
        CHECK_THAT(with(name, "\x1f\x8b and so on"), Contains("compressed by gzip"));
    }
    const TemporaryFolder folder;
    for (const auto& [bytes, kind] : {std::pair{"\x89HDF\r\n\x1a\n", "an HDF5 file"}, {"%PDF-1.7", "a PDF document"}}) {
        write_file(folder / "x.dat", bytes);
        CHECK_THAT(refusal([&] { open_checkpoint(folder / "x.dat"); }),
                   Contains(kind) && Contains("expected a GGUF file"));
    }
}

TEST_CASE("a safetensors file beside its config.json opens, and a shard opens the whole set") {
    SmallModel small;
    small.open();
    fs::rename(small.folder / "model.safetensors", small.folder / "other.safetensors");
    const auto model = open_checkpoint(small.folder / "other.safetensors");
    CHECK(model->path() == small.folder / "other.safetensors");
    CHECK(model->tensors().size() == small.tensors.size());
    CHECK(open_checkpoint(data("models/llama3-gqa-sharded/model-00002-of-00003.safetensors"))->tensors().size() == 20);

    fs::remove(small.folder / "config.json");
    CHECK_THAT(refusal([&] { open_checkpoint(small.folder / "other.safetensors"); }),
               Contains("no config.json beside"));
}
