#pragma once

#include <filesystem>
#include <memory>

#include "engine/tokenizer/tokenizer.h"

struct gguf_context;

namespace kvscope::checkpoint {

/// Reads the metadata of a GGUF file without its tensors. Free the result with gguf_free.
/// @throws CheckpointError if the file is not a readable GGUF file
gguf_context* open_gguf_metadata(const std::filesystem::path& file);

/// Opens the vocabulary of a GGUF file (the first file of a split set), tokenized by llama.cpp. Reads only the
/// metadata. Kinds: SentencePiece BPE ("llama") and byte-level BPE ("gpt2").
/// @throws CheckpointError if the file or its vocabulary is damaged or of another kind
std::unique_ptr<Tokenizer> open_gguf_tokenizer(const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
