#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/families/api/family.h"
#include "engine/files/gguf_file.h"
#include "engine/files/json_fields.h"

namespace kvscope::checkpoint {

// A field of a model's files is read, without effect, unsupported or unknown. Unsupported fields may be neutral.

/// @throws CheckpointError for the first field of config.json that the family does not read and that changes results
void refuse_unsupported_fields(const JsonFields& config, const Family& family);

void refuse_unsupported_keys(const GgufFile& file, const Family& family);

struct UnknownFields {
    std::filesystem::path file;
    std::vector<std::string> names;
};

/// Returns the unknown fields of each of a model's files. @throws CheckpointError if a file cannot be read
[[nodiscard]] std::vector<UnknownFields> unknown_fields(const std::filesystem::path& model);

}  // namespace kvscope::checkpoint
