// Truncated and randomly changed files either open or are refused with a CheckpointError.

#include <catch2/catch.hpp>
#include <random>

#include "engine/checkpoint/checkpoint.h"
#include "tests/checkpoint/model_files.h"

using namespace kvscope::checkpoint;
using namespace kvscope::checkpoint::testing;

namespace {

/// Opens a model and reads all of it.
void read_whole(const fs::path& path) {
    const auto model = open_checkpoint(path);
    for (const TensorInfo& tensor : model->tensors()) {
        size_t n = 1;
        for (const int64_t extent : tensor.shape) n *= static_cast<size_t>(extent);
        std::vector<float> values(n);
        model->read_f32(tensor.name, values);
    }
    model->config().inverse_frequencies();
}

/// Whether the model was refused. The message must name a file in the folder.
bool is_refused(const fs::path& path, const fs::path& folder) {
    const std::string message = refusal([&] { read_whole(path); });
    if (!message.empty()) {
        INFO(message);
        REQUIRE(message.find(folder.string()) != std::string::npos);
    }
    return !message.empty();
}

/// Returns a copy of `bytes` with one to four random bytes changed before `end`.
std::string with_changes(std::string bytes, size_t end, std::mt19937& random) {
    const auto n = 1 + random() % 4;
    for (size_t i = 0; i < n; ++i) {
        const size_t at = random() % end;
        const auto kind = random() % 4;
        const char extreme = kind == 0 ? '\0' : kind == 1 ? '\xff' : kind == 2 ? '\x7f' : static_cast<char>(random());
        bytes[at] = extreme;
    }
    return bytes;
}

}  // namespace

TEST_CASE("a truncated GGUF file is refused at any length") {
    for (const char* name : {"models/gguf-qwen3-q4_0/model.gguf", "models/gguf-llama-quantised/model.gguf",
                             "models/gguf-llama-q3_k_m/model.gguf"}) {
        const TemporaryFolder folder;
        const std::string whole = read_file(data(name));
        const fs::path path = folder / "cut.gguf";
        for (size_t size = 0; size < whole.size(); size += size < 12000 ? 41 : 997) {
            write_file(path, whole.substr(0, size));
            INFO(name << " cut to " << size);
            REQUIRE(is_refused(path, folder));
        }
        // Only the padding after the last tensor may be missing.
        write_file(path, whole.substr(0, whole.size() - 32));
        REQUIRE(is_refused(path, folder));
    }
}

TEST_CASE("a GGUF file with random changes opens or is refused") {
    std::mt19937 random(1);
    for (const char* name : {"models/gguf-qwen3-q4_0/model.gguf", "models/gguf-llama-f32/model.gguf"}) {
        const TemporaryFolder folder;
        const std::string whole = read_file(data(name));
        const fs::path path = folder / "changed.gguf";
        int n_refused = 0;
        for (int i = 0; i < 600; ++i) {
            // Half of the changes affect the first part of the header, which has the sizes.
            write_file(path, with_changes(whole, i % 2 == 0 ? 1200 : 14000, random));
            n_refused += is_refused(path, folder);
        }
        CHECK(n_refused > 120);
    }
}

TEST_CASE("a GGUF file of random bytes is refused") {
    std::mt19937 random(2);
    const TemporaryFolder folder;
    for (int i = 0; i < 300; ++i) {
        std::string bytes(random() % 5000, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random());
        const std::string start = "GGUF" + std::string("\3\0\0\0", 4);
        if (bytes.size() > 24) bytes.replace(0, 8, start);
        if (i % 2 == 0 && bytes.size() > 24) bytes.replace(8, 16, std::string("\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16));
        write_file(folder / "random.gguf", bytes);
        REQUIRE(is_refused(folder / "random.gguf", folder));
    }
}

TEST_CASE("a directory with truncated or changed files opens or is refused") {
    const TemporaryFolder folder;
    fs::copy(data("models/qwen2-sliding-yarn"), folder, fs::copy_options::recursive);
    REQUIRE_FALSE(is_refused(folder, folder));
    std::mt19937 random(3);
    for (const char* name :
         {"model.safetensors", "config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json"}) {
        const std::string whole = read_file(folder / name);
        const size_t header = std::min<size_t>(whole.size(), 3000);
        for (size_t size = 0; size + 2 < whole.size(); size += whole.size() > 20000 && size > header ? 9973 : 23) {
            write_file(folder / name, whole.substr(0, size));
            INFO(name << " cut to " << size);
            const bool refused = is_refused(folder, folder);
            // tokenizer.json is read only if tokenizer_config.json lacks a field.
            if (std::string(name) != "tokenizer.json") REQUIRE(refused);
        }
        for (int i = 0; i < 400; ++i) {
            write_file(folder / name, with_changes(whole, header, random));
            is_refused(folder, folder);
        }
        write_file(folder / name, whole);
    }
    REQUIRE_FALSE(is_refused(folder, folder));
}

TEST_CASE("a file that shrinks after opening causes an error") {
    const TemporaryFolder folder;
    const fs::path path = folder / "m.gguf";
    fs::copy_file(data("models/gguf-llama-f32/model.gguf"), path);
    const auto model = open_checkpoint(path);
    fs::resize_file(path, fs::file_size(path) / 2);
    std::vector<float> head(264 * 32);
    CHECK_THROWS_AS(model->read_f32("model.norm.weight", std::span(head).first(32)), CheckpointError);
}
