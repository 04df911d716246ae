#pragma once

#include <filesystem>

#include "app/cli/table_format_option.h"

namespace kvscope::cli {

/// Whether a path looks like a model: a GGUF or safetensors file or a directory with config.json.
[[nodiscard]] bool is_model(const std::filesystem::path& path);

/// Whether to call inspect_model() for this path. inspect_model() also explains why other model files cannot be read.
[[nodiscard]] bool can_inspect_as_model(const std::filesystem::path& path);

/// Checks a model's files, then prints the tensors and, as text, the configuration. @throws checkpoint::CheckpointError
[[nodiscard]] int inspect_model(const std::filesystem::path& path, const OutputFormat& format);

}  // namespace kvscope::cli
