#pragma once

#include <filesystem>

#include "app/cli/output_option.h"

namespace kvscope::cli {

/// Whether a path looks like a model (GGUF, safetensors, a directory with config.json) and not like a trace.
bool is_model(const std::filesystem::path& path);

/// Whether it is a model or what may stand in its place (a link, an adapter, other weights), of which inspect_model
/// tells.
bool is_of_model(const std::filesystem::path& path);

/// Opens and checks a model's files and prints what is in them: the tensors, and as text the configuration, too.
/// @returns 0 @throws checkpoint::CheckpointError
int inspect_model(const std::filesystem::path& path, const OutputFormat& format);

}  // namespace kvscope::cli
