#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/gguf_file.h"
#include "engine/files/json_fields.h"

namespace kvscope::checkpoint {

// Every field of a model's files is of one of four kinds: it is read; it has no effect on numbers; it changes numbers
// in a way that is not computed here, so that it must have its neutral value; or it is unknown, and `inspect` reports
// it.

/// @throws CheckpointError that names the first field of the third kind in config.json
void refuse_unsupported_fields(const JsonFields& config);

/// The same for a GGUF file's metadata.
void refuse_unsupported_keys(const GgufFile& file, std::string_view architecture);

/// The fields of one file of which nothing is known, alphabetical.
struct UnknownFields {
    std::filesystem::path file;
    std::vector<std::string> names;
};

/// Those of a model's files: configuration, tokenizer and chat template of a Hugging Face directory, or a GGUF file's
/// metadata. Files without any are left out.
/// @throws CheckpointError for a file that cannot be read
std::vector<UnknownFields> unknown_fields(const std::filesystem::path& model);

}  // namespace kvscope::checkpoint
