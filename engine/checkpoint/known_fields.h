#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/gguf_file.h"
#include "engine/files/json_fields.h"

namespace kvscope::checkpoint {

// Every field of a model's files is of one of four kinds. It is read; it does not affect numbers; it affects numbers
// but is not supported, so it must have its neutral value; or it is unknown, and `inspect` lists it.

/// @throws CheckpointError for the first unsupported field of config.json without its neutral value
void refuse_unsupported_fields(const JsonFields& config);

void refuse_unsupported_keys(const GgufFile& file, std::string_view architecture);

struct UnknownFields {
    std::filesystem::path file;
    std::vector<std::string> names;
};

/// Returns the unknown fields, by file, of a Hugging Face directory's configuration, tokenizer and chat template, or of
/// a GGUF file's metadata. @throws CheckpointError if a file cannot be read
std::vector<UnknownFields> unknown_fields(const std::filesystem::path& model);

}  // namespace kvscope::checkpoint
