#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/gguf_file.h"
#include "engine/files/json_fields.h"

namespace kvscope::checkpoint {

// A field of a model's files is read, without effect, unsupported or unknown. Unsupported fields may be neutral.

/// @throws CheckpointError for the first unsupported field of config.json whose value changes results
void refuse_unsupported_fields(const JsonFields& config);

void refuse_unsupported_keys(const GgufFile& file, std::string_view architecture);

struct UnknownFields {
    std::filesystem::path file;
    std::vector<std::string> names;
};

/// Returns the unknown fields of each of a model's files. @throws CheckpointError if a file cannot be read
[[nodiscard]] std::vector<UnknownFields> unknown_fields(const std::filesystem::path& model);

}  // namespace kvscope::checkpoint
