#include "engine/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/checkpoint/gguf_checkpoint.h"
#include "engine/checkpoint/hf_directory.h"
#include "engine/checkpoint/unusable_files.h"
#include "engine/files/content_kind.h"
#include "engine/files/file_reader.h"
#include "engine/files/fingerprint.h"
#include "engine/files/json_fields.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string begin_of(const fs::path& path) {
    const FileReader file(path);
    std::string begin(std::min<uint64_t>(file.size(), 256), '\0');
    file.read_at(0, std::as_writable_bytes(std::span<char>(begin)));
    return begin;
}

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
    refuse_dangling_links(directory);
    if (!fs::exists(directory / "config.json")) {
        const std::string foreign = advice_on_unsuitable_weights([](std::string_view) { return false; }, path);
        if (!foreign.empty()) throw CheckpointError(path, foreign);
        throw CheckpointError(path, "has no config.json beside it; expected a Hugging Face directory");
    }
    if (is_shard(directory, path)) return open_hf_directory(directory);
    return open_hf_directory(directory, path);
}

}  // namespace

std::string note_on_missing_embeddings(const Tokenizer& tokenizer, const ModelConfig& config) {
    const int64_t n = tokenizer.vocab_size() - config.vocab_size;
    if (n <= 0) return {};
    return fmt::format(
        "the tokenizer has {} tokens, but the model has {} embeddings: the token{} from {} on cannot be used in "
        "prompts",
        tokenizer.vocab_size(), config.vocab_size, n == 1 ? "" : "s", config.vocab_size);
}

std::unique_ptr<Checkpoint> open_checkpoint(const fs::path& path) {
    std::error_code error;
    refuse_dangling_link(path);
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
        throw CheckpointError(
            path.string() +
            " does not exist; expected a GGUF file, a Hugging Face directory, or the name of a model in the local "
            "hub cache (`kvscope models` lists the models)");
    }
    if (fs::is_directory(status)) {
        refuse_dangling_links(path);
        if (!fs::exists(path / "config.json")) report_no_config(path);
        return open_hf_directory(path);
    }
    if (begin_of(path).starts_with("GGUF") || path.extension() == ".gguf") return open_gguf(path);
    if (path.extension() == ".safetensors") return open_safetensors(path);
    const std::string extension = path.extension().string();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth") {
        throw CheckpointError(path,
                              "looks like PyTorch's pickled weights, which are not supported. Give a Hugging Face "
                              "directory with safetensors weights, or a GGUF file.");
    }
    const std::string kind = kind_of_content(begin_of(path));
    throw CheckpointError(path,
                          (kind.empty() ? "is not a GGUF file, a safetensors file or a directory" : "is " + kind) +
                              "; expected a GGUF file, a Hugging Face directory, or a .safetensors file in one");
}

std::string Checkpoint::fingerprint() const { return fingerprint_files(files(), config().config_json); }

}  // namespace kvscope::checkpoint
