#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/files/checkpoint_error.h"

namespace kvscope::checkpoint {

class Tokenizer;

struct TensorInfo {
    std::string name;            ///< as Hugging Face calls it: model.layers.0.self_attn.q_proj.weight
    std::vector<int64_t> shape;  ///< (out, in), row-major
    std::string stored_type;     ///< as in the file: F32, BF16, q4_1, …
};

/// Where a checkpoint's tokenizer is. Paths of files that do not exist are empty.
struct TokenizerFiles {
    std::filesystem::path gguf;               ///< set for GGUF (the first of a split set), all others empty then
    std::filesystem::path tokenizer_json;     ///< tokenizer.json
    std::filesystem::path tokenizer_config;   ///< tokenizer_config.json
    std::filesystem::path generation_config;  ///< generation_config.json
    std::filesystem::path chat_template;      ///< chat_template.jinja
};

/// A model on disk, opened and validated: every tensor that its configuration calls for is there in the right shape
/// and lies inside its file. Reading is thread-safe.
class Checkpoint {
 public:
    virtual ~Checkpoint() = default;

    virtual const ModelConfig& config() const = 0;
    virtual std::vector<TensorInfo> tensors() const = 0;
    virtual bool has(std::string_view name) const = 0;

    /// Reads a whole tensor, dequantised, in Hugging Face's layout: (out, in) row-major, rows of Q and K in the order
    /// that rotates pairs (i, i + d/2), whatever the file's own order.
    /// @throws CheckpointError if the tensor does not exist or its file can no longer be read
    /// @throws std::invalid_argument if `out` is not exactly as large as the tensor
    virtual void read_f32(std::string_view name, std::span<float> out) const = 0;

    /// The same as bf16 bits: verbatim where the file holds bf16, else rounded to nearest even from f32.
    virtual void read_bf16(std::string_view name, std::span<uint16_t> out) const = 0;

    /// As in TensorInfo. @throws CheckpointError if the tensor does not exist
    virtual std::string stored_type(std::string_view name) const = 0;

    /// A matrix as the file holds it: each row's bytes, the rows in Hugging Face's order.
    /// @throws as above
    virtual void read_stored(std::string_view name, std::span<std::byte> out) const = 0;

    /// The path that was opened: the (first) GGUF file or the directory.
    virtual const std::filesystem::path& path() const = 0;

    virtual TokenizerFiles tokenizer_files() const = 0;

    /// 64 hexadecimal digits that change whenever a weight or the configuration changes; docs/models.md says how.
    /// Reads every byte once, then comes out of a cache until a file changes.
    std::string fingerprint() const;

 protected:
    /// The files whose bytes make the model, in a fixed order.
    virtual std::vector<std::filesystem::path> files() const = 0;
};

/// Where a tokenizer has more tokens than the model has embeddings, what that means, for a person; else empty. Such a
/// model is used as transformers does: a prompt with one of those tokens is refused, and no answer can have one.
std::string tokens_without_embedding(const Tokenizer& tokenizer, const ModelConfig& config);

/// Opens a GGUF file (also the first of a split set), a Hugging Face directory, or a .safetensors file beside its
/// config.json, and checks all of it except the weights' values.
/// @throws CheckpointError with the file, what was expected, what was found and, for models that are not supported,
/// what is
std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path);

}  // namespace kvscope::checkpoint
