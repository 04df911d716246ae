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

/// Checks for unsupported fields with other than neutral values. @throws CheckpointError that names the first one in
/// config.json
void refuse_unsupported_fields(const JsonFields& config);

/// Like refuse_unsupported_fields(), for a GGUF file's metadata.
void refuse_unsupported_keys(const GgufFile& file, std::string_view architecture);

/// The unknown fields of one file, in alphabetical order.
struct UnknownFields {
    std::filesystem::path file;
    std::vector<std::string> names;
};

/// Returns the unknown fields of a model's files: configuration, tokenizer and chat template of a Hugging Face
/// directory, or a GGUF file's metadata. Omits files without unknown fields.
/// @throws CheckpointError if a file cannot be read
std::vector<UnknownFields> unknown_fields(const std::filesystem::path& model);

}  // namespace kvscope::checkpoint
