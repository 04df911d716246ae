#include "engine/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/checkpoint/gguf_checkpoint.h"
#include "engine/checkpoint/hf_directory.h"
#include "engine/files/file.h"
#include "engine/files/fingerprint.h"
#include "engine/files/json_fields.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

bool begins_with_gguf(const fs::path& path) {
    const InputFile file(path);
    std::string magic(std::min<uint64_t>(file.size(), 4), '\0');
    file.read_at(0, std::as_writable_bytes(std::span<char>(magic)));
    return magic == "GGUF";
}

/// Whether a directory's index names this file as one shard of several.
bool is_shard(const fs::path& directory, const fs::path& file) {
    const fs::path index = directory / "model.safetensors.index.json";
    if (!fs::exists(index)) return false;
    const auto json = JsonFields::parse_file(index);
    if (!json.contains("weight_map") || !json["weight_map"].is_object()) return false;
    const auto& shards = json["weight_map"];
    return std::any_of(shards.begin(), shards.end(),
                       [&](const auto& shard) { return shard == file.filename().string(); });
}

std::unique_ptr<Checkpoint> open_safetensors(const fs::path& path) {
    const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (!fs::exists(directory / "config.json")) {
        throw CheckpointError(path, "there is no config.json beside it; expected a Hugging Face directory");
    }
    if (is_shard(directory, path)) return open_hf_directory(directory);
    return open_hf_directory(directory, path);
}

}  // namespace

std::string tokens_without_embedding(const Tokenizer& tokenizer, const ModelConfig& config) {
    const int64_t n = tokenizer.vocab_size() - config.vocab_size;
    if (n <= 0) return {};
    return fmt::format(
        "the tokenizer has {} tokens, the model {} embeddings: the token{} from {} on cannot be used in prompts",
        tokenizer.vocab_size(), config.vocab_size, n == 1 ? "" : "s", config.vocab_size);
}

std::unique_ptr<Checkpoint> open_checkpoint(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
        throw CheckpointError(path, "does not exist; expected a GGUF file or a Hugging Face directory");
    }
    if (fs::is_directory(status)) {
        if (fs::exists(path / "config.json")) return open_hf_directory(path);
        for (const auto& entry : fs::directory_iterator(path)) {
            if (entry.path().extension() == ".gguf") {
                throw CheckpointError(
                    path, "has no config.json, but " + entry.path().filename().string() + ": give that file's path");
            }
        }
        throw CheckpointError(path, "has no config.json; expected a Hugging Face directory or a GGUF file");
    }
    if (begins_with_gguf(path) || path.extension() == ".gguf") return open_gguf(path);
    if (path.extension() == ".safetensors") return open_safetensors(path);
    const std::string extension = path.extension().string();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth") {
        throw CheckpointError(path,
                              "looks like PyTorch's pickled weights, which are not read; give a Hugging Face "
                              "directory with safetensors weights or a GGUF file");
    }
    throw CheckpointError(path, "is neither a GGUF file nor a safetensors file nor a directory");
}

std::string Checkpoint::fingerprint() const { return fingerprint_files(files(), config().config_json); }

}  // namespace kvscope::checkpoint
