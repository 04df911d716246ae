#pragma once

#include <filesystem>
#include <memory>

#include "engine/tokenizer/tokenizer.h"

struct gguf_context;

namespace kvscope::checkpoint {

/// Reads the metadata of a GGUF file, without its tensors; to be freed with gguf_free.
/// @throws CheckpointError if it is not a readable GGUF file
gguf_context* open_gguf_metadata(const std::filesystem::path& file);

/// The vocabulary of a GGUF file (of a split set: its first file), tokenised by llama.cpp. Nothing but the metadata is
/// read. The kinds that the supported families use: SentencePiece BPE ("llama") and byte-level BPE ("gpt2").
/// @throws CheckpointError if the file or its vocabulary is damaged or of another kind
std::unique_ptr<Tokenizer> open_gguf_tokenizer(const std::filesystem::path& file);

}  // namespace kvscope::checkpoint
