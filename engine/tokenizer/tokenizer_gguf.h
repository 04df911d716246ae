#pragma once

#include <filesystem>
#include <memory>

#include "engine/tokenizer/tokenizer.h"

struct gguf_context;

namespace kvscope::checkpoint {

/// Reads the metadata of a GGUF file. Free the result with gguf_free(). @throws CheckpointError
[[nodiscard]] gguf_context* open_gguf_metadata(const std::filesystem::path& file);

/// Opens the tokenizer of a GGUF file (the first of a split set), which calls llama.cpp. Supports SentencePiece BPE
/// ("llama") and byte-level BPE ("gpt2"). @throws CheckpointError for damaged files and other kinds
[[nodiscard]] std::unique_ptr<Tokenizer> open_gguf_tokenizer(const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
