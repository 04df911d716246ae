#pragma once

#include <filesystem>

#include "app/cli/output_option.h"

namespace kvscope::cli {

/// Whether a path looks like a model: a GGUF or safetensors file or a directory with config.json.
bool is_model(const std::filesystem::path& path);

/// Whether a path is a model or a file that inspect_model explains instead: a link, an adapter, other weights.
bool is_of_model(const std::filesystem::path& path);

/// Opens and checks a model's files. Prints its tensors and, as text, its configuration. @throws
/// checkpoint::CheckpointError
int inspect_model(const std::filesystem::path& path, const OutputFormat& format);

}  // namespace kvscope::cli
