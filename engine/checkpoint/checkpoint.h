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
    std::string name;            ///< Hugging Face name: model.layers.0.self_attn.q_proj.weight
    std::vector<int64_t> shape;  ///< (out, in), row-major
    std::string stored_type;     ///< type in the file: F32, BF16, q4_1, …
};

struct TokenizerFiles {
    std::filesystem::path gguf;  ///< GGUF file (the first of a split set); if set, all other paths are empty
    std::filesystem::path tokenizer_json;
    std::filesystem::path tokenizer_config;
    std::filesystem::path generation_config;
    std::filesystem::path chat_template;
};

/// A valid model on disk with all required tensors in the right shapes. Reading is thread-safe.
class Checkpoint {
 public:
    virtual ~Checkpoint() = default;

    [[nodiscard]] virtual const ModelConfig& config() const = 0;
    [[nodiscard]] virtual std::vector<TensorInfo> tensors() const = 0;
    [[nodiscard]] virtual bool has(std::string_view name) const = 0;

    /// Reads a tensor as f32 (out, in). Rows of Q and K have Hugging Face's order, in which RoPE rotates (i, i + d/2).
    /// @throws CheckpointError if the tensor cannot be read; std::invalid_argument if `out` has the wrong size
    virtual void read_f32(std::string_view name, std::span<float> out) const = 0;

    /// Like read_f32(), as bf16 bits. Rounds from f32 to nearest even if the file does not have bf16.
    virtual void read_bf16(std::string_view name, std::span<uint16_t> out) const = 0;

    [[nodiscard]] virtual std::string stored_type(std::string_view name) const = 0;

    /// Reads a matrix in the file's format, with rows in Hugging Face's order. @throws as read_f32()
    virtual void read_stored(std::string_view name, std::span<std::byte> out) const = 0;

    [[nodiscard]] virtual const std::filesystem::path& path() const = 0;

    [[nodiscard]] virtual TokenizerFiles tokenizer_files() const = 0;

    /// Returns 64 hexadecimal digits that depend on all weights and the configuration (see docs/models.md).
    [[nodiscard]] std::string fingerprint() const;

 protected:
    [[nodiscard]] virtual std::vector<std::filesystem::path> files() const = 0;
};

/// Returns a note for the user if the tokenizer has more tokens than the model has embeddings, else an empty text.
[[nodiscard]] std::string note_on_missing_embeddings(const Tokenizer& tokenizer, const ModelConfig& config);

/// Opens a GGUF file, a Hugging Face directory or a .safetensors file. Checks everything except the weights' values.
/// @throws CheckpointError, which names the file, the expected and the actual content
std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path);

}  // namespace kvscope::checkpoint
