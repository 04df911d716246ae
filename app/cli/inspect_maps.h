#pragma once

#include <filesystem>

#include "app/cli/output_option.h"

namespace kvscope::cli {

/// Whether a file is a safetensors file whose metadata say that it holds maps of EchoKV.
bool is_maps(const std::filesystem::path& path);

/// Prints what such a file says of its maps: which model they are of, what the cache stores with them, how they were
/// made. @throws policies::EchoMapsError for a damaged one
int inspect_maps(const std::filesystem::path& path, const OutputFormat& format);

}  // namespace kvscope::cli
